"""quotas"""

import sqlalchemy as sa
import sqlmodel.sql.sqltypes
from alembic import op

import storage.types

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | None = None
depends_on: str | None = None

_TABLES = ("quota_changes", "set_limits", "metered_xorbs", "metered_contents", "meters")


def upgrade() -> None:
    """Bring the tables forward; a meter is made from its files when it is first needed."""
    text = sqlmodel.sql.sqltypes.AutoString
    op.create_table(
        "meters",
        sa.Column("scope", text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("stored", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope"),
    )
    op.create_table(
        "metered_contents",
        sa.Column("scope", text(), nullable=False),
        sa.Column("digest", text(), nullable=False),
        sa.Column("files", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "digest"),
    )
    op.create_table(
        "metered_xorbs",
        sa.Column("scope", text(), nullable=False),
        sa.Column("xorb", text(), nullable=False),
        sa.Column("uses", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("scope", "xorb"),
    )
    op.create_table(
        "set_limits",
        sa.Column("subject", text(), nullable=False),
        sa.Column("budget", text(), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("subject", "budget"),
    )
    op.create_table(
        "quota_changes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("subject", text(), nullable=False),
        sa.Column("budget", text(), nullable=False),
        sa.Column("action", text(), nullable=False),
        sa.Column("actor", text(), nullable=False),
        sa.Column("reason", text(), nullable=False),
        sa.Column("before", sa.BigInteger(), nullable=True),
        sa.Column("after", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_quota_changes_subject", "quota_changes", ["subject"])


def downgrade() -> None:
    """Take the tables back."""
    op.drop_index("ix_quota_changes_subject", "quota_changes")
    for table in _TABLES:
        op.drop_table(table)
