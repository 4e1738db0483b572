"""Remove what nothing refers to and nobody mentioned for three weeks, beside a running server.

Clients rely for up to three weeks on what they saw stored. Nothing younger is ever removed, so no sweep needs a
new store generation. Rows go first; a file without a row is harmless, and is removed while its name is locked.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Engine, delete, exists
from sqlmodel import Session, col, select

from storage.database import reading, writing
from storage.local import upserts
from storage.local.blobs import Blobs
from storage.local.claims import Claimed
from storage.local.rows import ClaimRow, ContentRow, ContentXorbRow, FileRow, XorbRow

KEPT_FOR = timedelta(days=22)
"""Three weeks, and the day by which the note of a mention may lag."""

LEFTOVER_AFTER = timedelta(days=1)


@dataclass(frozen=True)
class Swept:
    """What was removed, or would be: records by number, files also in bytes."""

    contents: int
    xorbs: int
    files: int
    leftovers: int
    freed_bytes: int

    def __str__(self) -> str:
        """Say it in a line."""
        return (
            f"{self.contents} contents, {self.xorbs} xorbs and {self.leftovers} broken uploads; "
            f"{self.files + self.leftovers} files, {self.freed_bytes} bytes freed"
        )


def sweep(engine: Engine, blobs: Blobs, *, now: datetime, takes_strangers: bool = True) -> Swept:
    """Remove what may go and say what that was.

    Files that no row named when it began are strangers: a crash leaves some, but to an empty or older database beside
    a full folder everything is one. Without `takes_strangers` they stay.
    """
    with writing(engine) as session:
        contents, xorbs = _sweep_rows(session, before=now - KEPT_FOR)
    names = list(_orphans(engine, blobs)) if takes_strangers else xorbs
    orphans = [_remove_orphan(engine, blobs, name, now=now) for name in names]
    broken = [_remove(path) for path in list(_leftovers(blobs))]
    return _total(contents, xorbs, orphans, broken)


def foresee(engine: Engine, blobs: Blobs, *, now: datetime) -> Swept:
    """Say what a sweep would remove."""
    with Session(engine) as session:
        contents, xorbs = _sweep_rows(session, before=now - KEPT_FOR)
        session.rollback()
    names = {*xorbs, *_orphans(engine, blobs)}
    orphans = [_size(blobs.path(name)) for name in sorted(names)]
    return _total(contents, xorbs, orphans, [_size(path) for path in _leftovers(blobs)])


def _total(contents: int, xorbs: list[str], orphans: list[int | None], broken: list[int | None]) -> Swept:
    files, leftovers = [n for n in orphans if n is not None], [n for n in broken if n is not None]
    return Swept(contents, len(xorbs), len(files), len(leftovers), sum(files) + sum(leftovers))


def _sweep_rows(session: Session, *, before: datetime) -> tuple[int, list[str]]:
    """Delete records that may go; count the contents and name the xorbs.

    Whoever mentions one in the same moment has its row: the deletion waits, looks again and lets it be.
    """
    named = exists().where(col(FileRow.digest) == col(ContentRow.digest))
    old = delete(ContentRow).where(col(ContentRow.mentioned_at) < before, ~named).returning(col(ContentRow.digest))
    contents = list(session.scalars(old))
    built_on = exists().where(col(ContentXorbRow.xorb) == col(XorbRow.digest))
    unused = delete(XorbRow).where(col(XorbRow.mentioned_at) < before, ~built_on).returning(col(XorbRow.digest))
    xorbs = list(session.scalars(unused))
    _drop_claims(session, (Claimed.CONTENT, Claimed.OFFERED), contents)
    _drop_claims(session, (Claimed.XORB,), xorbs)
    return len(contents), xorbs


def _drop_claims(session: Session, kinds: tuple[Claimed, ...], digests: list[str]) -> None:
    for some in upserts.slices(digests):
        session.execute(delete(ClaimRow).where(col(ClaimRow.kind).in_(kinds), col(ClaimRow.digest).in_(some)))


def _orphans(engine: Engine, blobs: Blobs) -> Iterator[str]:
    """Name the xorb files that have no row, a folder at a time."""
    for folder in sorted((blobs.folder / "xorbs").glob("??")):
        names = sorted(path.name for path in folder.glob("??/*"))
        with reading(engine) as session:
            for some in upserts.slices(names):
                known = set(session.exec(select(XorbRow.digest).where(col(XorbRow.digest).in_(some))))
                yield from (name for name in some if name not in known)


def _remove_orphan(engine: Engine, blobs: Blobs, name: str, *, now: datetime) -> int | None:
    """Remove a file without a row; its size in bytes, or None where an upload was faster.

    A row of that name is taken and given back meanwhile: an upload of the same xorb waits for it.
    """
    row = {"digest": name, "size": 0, "unpacked": 0, "chunks": b"", "stored_at": now, "mentioned_at": now}
    with writing(engine) as session:
        if not upserts.insert_new(session, XorbRow, [row]):
            return None
        size = _remove(blobs.path(name))
        session.execute(delete(XorbRow).where(col(XorbRow.digest) == name))
    return size


def _leftovers(blobs: Blobs) -> Iterator[Path]:
    """Find temporary files that no process has written to for a day."""
    before = time.time() - LEFTOVER_AFTER.total_seconds()
    for path in sorted((blobs.folder / "incoming").glob("*")):
        with suppress(FileNotFoundError):  # that upload ended just now
            if path.stat().st_mtime < before:
                yield path


def _remove(path: Path) -> int | None:
    size = _size(path)
    path.unlink(missing_ok=True)
    return size


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
