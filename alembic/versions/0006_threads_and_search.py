"""threads and search"""

import sqlalchemy as sa
import sqlmodel.sql.sqltypes
from alembic import op

import storage.types

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | None = None
depends_on: str | None = None

_WORDS = {
    "sqlite": (
        "CREATE VIRTUAL TABLE search_words "
        "USING fts5(title, body, tokenize = \"unicode61 tokenchars '_'\", prefix = '3')",
    ),
    "postgresql": (
        "CREATE TABLE search_words (id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        "CREATE INDEX search_words_gin ON search_words USING GIN (words)",
    ),
}


def upgrade() -> None:
    """Bring the tables forward; `paddock reindex` fills the search of what is there already."""
    text = sqlmodel.sql.sqltypes.AutoString
    with op.batch_alter_table("posts") as posts:
        posts.add_column(sa.Column("state", text(), nullable=False, server_default=""))
        posts.add_column(sa.Column("superseded_by", text(), nullable=True))
    with op.batch_alter_table("results") as results:
        results.add_column(sa.Column("kept_off", text(), nullable=False, server_default=""))
    op.create_table(
        "moderation",
        sa.Column("filename", text(), nullable=False),
        sa.Column("action", text(), nullable=False),
        sa.Column("folder", text(), nullable=False),
        sa.Column("target", text(), nullable=False),
        sa.Column("actor", text(), nullable=False),
        sa.Column("reason", text(), nullable=False),
        sa.Column("at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("filename", name="pk_moderation"),
    )
    op.create_index("ix_moderation_target", "moderation", ["target"])
    op.create_table(
        "read_marks",
        sa.Column("handle", text(), nullable=False),
        sa.Column("read_to", text(), nullable=False),
        sa.Column("at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("handle", name="pk_read_marks"),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", storage.types.UtcDateTime(timezone=True), nullable=False),
        sa.Column("kind", text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_events_at", "events", ["at"])
    op.create_table(
        "search",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("kind", text(), nullable=False),
        sa.Column("name", text(), nullable=False),
        sa.Column("digest", text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_search"),
        sa.UniqueConstraint("kind", "name", name="uq_search_kind_name"),
    )
    for statement in _WORDS[op.get_bind().dialect.name]:
        op.execute(statement)


def downgrade() -> None:
    """Take the tables back."""
    for table in ("search_words", "search", "events", "read_marks", "moderation"):
        op.drop_table(table)
    with op.batch_alter_table("results") as results:
        results.drop_column("kept_off")
    with op.batch_alter_table("posts") as posts:
        posts.drop_column("superseded_by")
        posts.drop_column("state")
