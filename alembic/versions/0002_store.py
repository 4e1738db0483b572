"""store"""

import unicodedata

import sqlalchemy as sa
import sqlmodel.sql.sqltypes
from alembic import op

import storage.types

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Bring the tables forward."""
    _fold_names()
    _add_references()


def downgrade() -> None:
    """Take the tables back."""
    _drop_references()
    with op.batch_alter_table("files", schema=None) as batch_op:
        batch_op.drop_index("ix_files_bucket_id_folded")
        batch_op.drop_column("folded")


def _fold_names() -> None:
    """Add the folded form of each path, which no SQL function makes."""
    op.add_column("files", sa.Column("folded", sqlmodel.sql.sqltypes.AutoString(), nullable=True))
    columns = (sa.column("bucket_id", sa.Integer()), sa.column("path", sa.String()), sa.column("folded", sa.String()))
    files = sa.table("files", *columns)
    named = (files.c.bucket_id == sa.bindparam("bucket")) & (files.c.path == sa.bindparam("name"))
    rows = op.get_bind().execute(sa.select(files.c.bucket_id, files.c.path)).all()
    folded = [{"bucket": row.bucket_id, "name": row.path, "form": _fold(row.path)} for row in rows]
    if folded:
        op.get_bind().execute(sa.update(files).where(named).values(folded=sa.bindparam("form")), folded)
    with op.batch_alter_table("files", schema=None) as batch_op:
        batch_op.alter_column("folded", existing_type=sqlmodel.sql.sqltypes.AutoString(), nullable=False)
        batch_op.create_index("ix_files_bucket_id_folded", ["bucket_id", "folded"], unique=False)


def _fold(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def _add_references() -> None:
    """Note which xorbs each content is built on (what no file refers to is swept), and when it was last named."""
    text = sqlmodel.sql.sqltypes.AutoString()
    for table, name in (("content_xorbs", "xorb"), ("seen_chunks", "chunk")):
        op.create_table(
            table,
            sa.Column(name, text, nullable=False),
            sa.Column("content", text, nullable=False),
            sa.ForeignKeyConstraint(["content"], ["contents.digest"], ondelete="CASCADE"),
            sa.PrimaryKeyConstraint(name, "content"),
        )
        op.create_index(f"ix_{table}_content", table, ["content"], unique=False)
    op.create_index("ix_claims_digest", "claims", ["digest"], unique=False)
    op.add_column("contents", sa.Column("mentioned_at", storage.types.UtcDateTime(timezone=True), nullable=True))
    op.execute("UPDATE contents SET mentioned_at = stored_at")
    with op.batch_alter_table("contents", schema=None) as batch_op:
        batch_op.alter_column("mentioned_at", existing_type=storage.types.UtcDateTime(timezone=True), nullable=False)
    _fill_references()


def _fill_references() -> None:
    contents = sa.table("contents", sa.column("digest", sa.String()), sa.column("terms", sa.LargeBinary()))
    references = sa.table("content_xorbs", sa.column("xorb", sa.String()), sa.column("content", sa.String()))
    for digest in op.get_bind().scalars(sa.select(contents.c.digest)).all():
        raw = op.get_bind().scalars(sa.select(contents.c.terms).where(contents.c.digest == digest)).one()
        xorbs = {raw[start : start + 32] for start in range(0, len(raw), 44)}
        rows = [{"xorb": _text(xorb), "content": digest} for xorb in xorbs]
        if rows:
            op.get_bind().execute(sa.insert(references), rows)


def _text(digest: bytes) -> str:
    return "".join(f"{int.from_bytes(digest[i : i + 8], 'little'):016x}" for i in range(0, 32, 8))


def _drop_references() -> None:
    with op.batch_alter_table("contents", schema=None) as batch_op:
        batch_op.drop_column("mentioned_at")
    op.drop_index("ix_claims_digest", "claims")
    op.drop_table("seen_chunks")
    op.drop_table("content_xorbs")
