"""Remove what nothing refers to and nobody mentioned for three weeks, beside a running server.

Clients rely for up to three weeks on what they saw stored. Nothing younger is ever removed, so no sweep needs a
new store generation. Rows go first; a file without a row is harmless, and is removed while its name is locked.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import ColumnElement, Engine, delete, exists, tuple_
from sqlmodel import Session, col, select

from storage.database import reading, writing
from storage.local import upserts
from storage.local.blobs import Blobs
from storage.local.claims import Claimed
from storage.local.mentions import Mentioned
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


def sweep(
    engine: Engine,
    blobs: Blobs,
    *,
    now: datetime,
    takes_strangers: bool = True,
    is_over: Callable[[], bool] = lambda: False,
) -> Swept:
    """Remove what may go, a page at a time until `is_over`, and say what that was.

    Files that no row named when it began are strangers: a crash leaves some, but to an empty or older database beside
    a full folder everything is one. Without `takes_strangers` they stay.
    """
    before = now - KEPT_FOR
    contents = sum(len(page) for page in _sweep_rows(engine, ContentRow, before, is_over))
    xorbs: list[str] = []
    orphans: list[int | None] = []
    for page in _sweep_rows(engine, XorbRow, before, is_over):
        xorbs += page
        orphans += [_remove_orphan(engine, blobs, name, now=now) for name in page]
    if takes_strangers and not is_over():
        orphans += [_remove_orphan(engine, blobs, name, now=now) for name in list(_orphans(engine, blobs))]
    broken = [_remove(path) for path in list(_leftovers(blobs))]
    return _total(contents, xorbs, orphans, broken)


def foresee(engine: Engine, blobs: Blobs, *, now: datetime) -> Swept:
    """Say what a sweep would remove."""
    before = now - KEPT_FOR
    going = select(ContentRow.digest).where(*_may_go(ContentRow, before))
    kept = exists().where(col(ContentXorbRow.xorb) == col(XorbRow.digest), col(ContentXorbRow.content).not_in(going))
    with reading(engine) as session:
        contents = len(session.exec(going).all())
        xorbs = list(session.exec(select(XorbRow.digest).where(col(XorbRow.mentioned_at) < before, ~kept)))
    names = {*xorbs, *_orphans(engine, blobs)}
    orphans = [_size(blobs.path(name)) for name in sorted(names)]
    return _total(contents, xorbs, orphans, [_size(path) for path in _leftovers(blobs)])


def _total(contents: int, xorbs: list[str], orphans: list[int | None], broken: list[int | None]) -> Swept:
    files, leftovers = [n for n in orphans if n is not None], [n for n in broken if n is not None]
    return Swept(contents, len(xorbs), len(files), len(leftovers), sum(files) + sum(leftovers))


def _may_go(table: Mentioned, before: datetime) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Ask for what nobody mentioned lately and nothing is built on."""
    if table is ContentRow:
        used = exists().where(col(FileRow.digest) == col(ContentRow.digest))
    else:
        used = exists().where(col(ContentXorbRow.xorb) == col(XorbRow.digest))
    return col(table.mentioned_at) < before, ~used


def _sweep_rows(engine: Engine, table: Mentioned, before: datetime, is_over: Callable[[], bool]) -> Iterator[list[str]]:
    """Delete records that may go, with the claims to them, and name them: each page in a transaction of its own."""
    after = ""
    while not is_over():
        asked = select(table.digest).where(col(table.digest) > after, *_may_go(table, before)).order_by(table.digest)
        with reading(engine) as session:
            page = session.exec(asked.limit(upserts.IN_LIMIT)).all()
        if not page:
            return
        with writing(engine) as session:
            gone = _delete(session, table, page, before)
        yield gone
        after = page[-1]


def _delete(session: Session, table: Mentioned, page: Sequence[str], before: datetime) -> list[str]:
    """Delete those records of a page that still may go.

    One that somebody holds is about to be mentioned and stays. So a sweep never waits while it holds anything, and
    nobody else's order of locks can make it part of a deadlock.
    """
    asked = select(table.digest).where(col(table.digest).in_(page), *_may_go(table, before))
    free = list(session.exec(asked.with_for_update(skip_locked=True)))
    session.execute(delete(table).where(col(table.digest).in_(free)))
    kinds = (Claimed.CONTENT, Claimed.OFFERED) if table is ContentRow else (Claimed.XORB,)
    key = tuple_(col(ClaimRow.bucket_id), col(ClaimRow.kind), col(ClaimRow.digest))
    claims = select(ClaimRow.bucket_id, ClaimRow.kind, ClaimRow.digest).where(
        col(ClaimRow.kind).in_(kinds), col(ClaimRow.digest).in_(free)
    )
    session.execute(delete(ClaimRow).where(key.in_(claims.with_for_update(skip_locked=True))))
    return free


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
