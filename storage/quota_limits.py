"""How much an owner may keep: the race's defaults, or what an operator set."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlmodel import Session, select

from storage.challenge import Limits
from storage.quota_rows import SetLimitRow
from storage.quota_tally import Usage


class ByteBudget(StrEnum):
    """What of an owner's files is limited, as `challenge.toml` calls it."""

    SIZE = "bucket_bytes"
    STORED = "bucket_stored_bytes"
    FILES = "bucket_files"


UNITS = {
    ByteBudget.SIZE: "bytes of files",
    ByteBudget.STORED: "bytes of different chunks",
    ByteBudget.FILES: "files",
}


@dataclass(frozen=True)
class ByteLimits:
    """The most that an owner's buckets may come to together; None is no limit."""

    size: int | None = None
    stored: int | None = None
    files: int | None = None

    def by_budget(self) -> Iterator[tuple[ByteBudget, int | None]]:
        """Yield each budget with its limit."""
        yield from zip(ByteBudget, (self.size, self.stored, self.files), strict=True)

    def pairs(self, usage: Usage) -> Iterator[tuple[ByteBudget, int | None, int]]:
        """Yield each budget with its limit and what is used of it."""
        yield ByteBudget.SIZE, self.size, usage.size
        yield ByteBudget.STORED, self.stored, usage.stored
        yield ByteBudget.FILES, self.files, usage.files


def user_subject(user: str) -> str:
    """Name a person as one who has limits."""
    return f"user:{user}"


def agent_subject(handle: str) -> str:
    """Name an agent, or a person's handle, as one who has limits."""
    return f"agent:{handle}"


def default_byte_limits(limits: Limits) -> ByteLimits:
    """Read the race's own limits, where 0 stands for none."""
    return ByteLimits(limits.bucket_bytes or None, limits.bucket_stored_bytes or None, limits.bucket_files or None)


def byte_limits(session: Session, limits: Limits, owner: str) -> ByteLimits:
    """Return the limits that hold for an owner."""
    default, subject = default_byte_limits(limits), user_subject(owner)
    return ByteLimits(
        size=limit_of(session, subject, ByteBudget.SIZE, default.size),
        stored=limit_of(session, subject, ByteBudget.STORED, default.stored),
        files=limit_of(session, subject, ByteBudget.FILES, default.files),
    )


def limit_of(session: Session, subject: str, budget: str, default: int | None) -> int | None:
    """Return what an operator set for a subject's budget, or the default."""
    asked = select(SetLimitRow.budget, SetLimitRow.most).where(
        SetLimitRow.subject == subject, SetLimitRow.budget == budget
    )
    found = session.exec(asked).first()
    return found[1] if found else default
