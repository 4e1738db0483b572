"""taskforces and traces"""

import sqlalchemy as sa
import sqlmodel.sql.sqltypes
from alembic import op

import storage.types

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | None = None
depends_on: str | None = None

_TEXT = sqlmodel.sql.sqltypes.AutoString


def upgrade() -> None:
    """Bring the tables forward."""
    op.create_table(
        "taskforces",
        sa.Column("name", _TEXT(), nullable=False),
        sa.Column("creator", _TEXT(), nullable=False),
        sa.Column("created", _TEXT(), nullable=False),
        sa.Column("updated", _TEXT(), nullable=False),
        sa.Column("touched_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("frontmatter", sa.JSON(), nullable=False),
        sa.Column("body", _TEXT(), nullable=False),
        sa.Column("haystack", _TEXT(), nullable=False),
        sa.Column("content_digest", _TEXT(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_taskforces")),
    )
    op.create_index(op.f("ix_taskforces_creator"), "taskforces", ["creator"], unique=False)
    op.create_table(
        "taskforce_files",
        sa.Column("taskforce", _TEXT(), nullable=False),
        sa.Column("path", _TEXT(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("uploaded_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("taskforce", "path", name=op.f("pk_taskforce_files")),
    )
    op.create_table(
        "traces",
        sa.Column("agent", _TEXT(), nullable=False),
        sa.Column("session_id", _TEXT(), nullable=False),
        sa.Column("promoted_at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("started_at", storage.types.UtcDateTime(timezone=True), nullable=True),
        sa.Column("harness", _TEXT(), nullable=False),
        sa.Column("model", _TEXT(), nullable=False),
        sa.Column("share", _TEXT(), nullable=False),
        sa.Column("completeness", _TEXT(), nullable=False),
        sa.Column("total_tokens", sa.BigInteger(), nullable=True),
        sa.Column("input_tokens", sa.BigInteger(), nullable=True),
        sa.Column("output_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=True),
        sa.Column("cache_creation_tokens", sa.BigInteger(), nullable=True),
        sa.Column("reasoning_tokens", sa.BigInteger(), nullable=True),
        sa.Column("tool_calls", sa.BigInteger(), nullable=True),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("result_ref", _TEXT(), nullable=False),
        sa.Column("primary_log_file", _TEXT(), nullable=False),
        sa.Column("frontmatter", sa.JSON(), nullable=False),
        sa.Column("body", _TEXT(), nullable=False),
        sa.Column("haystack", _TEXT(), nullable=False),
        sa.Column("content_digest", _TEXT(), nullable=False),
        sa.PrimaryKeyConstraint("agent", "session_id", name=op.f("pk_traces")),
    )
    op.create_index(op.f("ix_traces_promoted_at"), "traces", ["promoted_at"], unique=False)


def downgrade() -> None:
    """Take the tables back."""
    op.drop_table("traces")
    op.drop_table("taskforce_files")
    op.drop_table("taskforces")
