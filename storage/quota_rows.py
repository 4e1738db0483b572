"""Tables of the byte meter, of budgets that operators set, and of the trail they leave."""

from datetime import datetime

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel

from storage.types import UtcDateTime


class MeterRow(SQLModel, table=True):
    """What the files of one scope (`owner:ada`, `bucket:17`) come to; sizes in bytes."""

    __tablename__ = "meters"

    scope: str = Field(primary_key=True)
    size: int = Field(sa_type=BigInteger)
    stored: int = Field(sa_type=BigInteger)
    files: int = Field(sa_type=BigInteger)


class MeteredContentRow(SQLModel, table=True):
    """How many files of a scope hold a content."""

    __tablename__ = "metered_contents"

    scope: str = Field(primary_key=True)
    digest: str = Field(primary_key=True)
    files: int = Field(sa_type=BigInteger)


class MeteredXorbRow(SQLModel, table=True):
    """How many of a scope's contents use each chunk of a xorb: a little-endian u32 per chunk."""

    __tablename__ = "metered_xorbs"

    scope: str = Field(primary_key=True)
    xorb: str = Field(primary_key=True)
    uses: bytes


class SetLimitRow(SQLModel, table=True):
    """A limit that an operator set for one subject (`agent:blue-heron`, `user:ada`); None is no limit at all."""

    __tablename__ = "set_limits"

    subject: str = Field(primary_key=True)
    budget: str = Field(primary_key=True)
    most: int | None = Field(default=None, sa_type=BigInteger)


class QuotaChangeRow(SQLModel, table=True):
    """One set or reset: who, when, why, and the figure before and after it."""

    __tablename__ = "quota_changes"

    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(sa_type=UtcDateTime)
    subject: str = Field(index=True)
    budget: str
    action: str
    actor: str
    reason: str
    before: int | None = Field(default=None, sa_type=BigInteger)
    after: int | None = Field(default=None, sa_type=BigInteger)
