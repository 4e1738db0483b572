"""Tables of the embedded store."""

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlmodel import Field, SQLModel

from storage.types import UtcDateTime


class BucketRow(SQLModel, table=True):
    """A bucket; `id` is internal so that a move changes one row, and drawn at random: none is ever used twice."""

    __tablename__ = "buckets"

    id: int = Field(primary_key=True)
    name: str = Field(unique=True)
    owner: str = Field(index=True)
    private: bool
    created_at: datetime = Field(sa_type=UtcDateTime)


class FileRow(SQLModel, table=True):
    """A file in a bucket, by path; `folded` is what its path and that of a twin have in common."""

    __tablename__ = "files"
    __table_args__ = (Index("ix_files_bucket_id_folded", "bucket_id", "folded"),)

    bucket_id: int = Field(foreign_key="buckets.id", primary_key=True, ondelete="CASCADE")
    path: str = Field(primary_key=True)
    folded: str
    digest: str = Field(index=True)
    size: int = Field(sa_type=BigInteger)
    mtime_ms: int = Field(sa_type=BigInteger)
    content_type: str | None = None
    uploaded_at: datetime = Field(sa_type=UtcDateTime)


class XorbRow(SQLModel, table=True):
    """A verified xorb on disk; `chunks` is its table as `storage.xet.tables` stores it."""

    __tablename__ = "xorbs"

    digest: str = Field(primary_key=True)
    size: int = Field(sa_type=BigInteger)
    unpacked: int = Field(sa_type=BigInteger)
    chunks: bytes
    stored_at: datetime = Field(sa_type=UtcDateTime)
    mentioned_at: datetime = Field(sa_type=UtcDateTime)


class ContentRow(SQLModel, table=True):
    """A verified file content; `terms` packs one (xorb hash 32 B, chunk start, chunk end, length; u32) per term."""

    __tablename__ = "contents"

    digest: str = Field(primary_key=True)
    size: int = Field(sa_type=BigInteger)
    terms: bytes
    stored_at: datetime = Field(sa_type=UtcDateTime)
    mentioned_at: datetime = Field(sa_type=UtcDateTime)


class ContentXorbRow(SQLModel, table=True):
    """A xorb that a content is built on: what one look at the index keeps from being swept."""

    __tablename__ = "content_xorbs"

    xorb: str = Field(primary_key=True)
    content: str = Field(foreign_key="contents.digest", primary_key=True, ondelete="CASCADE", index=True)


class SeenChunkRow(SQLModel, table=True):
    """A chunk that clients ask for (a file's first, and one in 1,024), and a content that it was seen in."""

    __tablename__ = "seen_chunks"

    chunk: str = Field(primary_key=True)
    content: str = Field(foreign_key="contents.digest", primary_key=True, ondelete="CASCADE", index=True)


class ClaimRow(SQLModel, table=True):
    """What the writers of a bucket may build on: contents by shard or offer, xorbs by upload or grant."""

    __tablename__ = "claims"

    bucket_id: int = Field(foreign_key="buckets.id", primary_key=True, ondelete="CASCADE")
    kind: str = Field(primary_key=True)
    digest: str = Field(primary_key=True, index=True)
