"""Verify everything the store holds: every byte of every xorb, every file's terms and hash, every name.

Records are read a page at a time and a xorb a chunk at a time, beside a running server. What looks wrong is looked
at again while nobody writes, before it is called damaged.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import Session, col, or_, select

from storage import quota_meter
from storage.database import reading, writing
from storage.local import inspection, quarantine
from storage.local.blobs import Blobs
from storage.local.contents import EMPTY
from storage.local.rows import BucketRow, ContentRow, FileRow, XorbRow

_PAGE = 200

Advance = Callable[[int], None]
"""Told how much was looked at: bytes of xorbs, number of contents."""

_COLUMNS: tuple[Any, ...] = (BucketRow.name, FileRow.path, FileRow.digest, FileRow.size, ContentRow.size)


@dataclass(frozen=True)
class Finding:
    """Something that is not as recorded: `what` it is, its `name`, and why.

    What could not be read `is_damage` to nobody: it may be whole, and is never repaired.
    """

    what: str
    name: str
    why: str
    is_damage: bool = True

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.what} {self.name}: {self.why}"


@dataclass(frozen=True)
class Extent:
    """How much there is to look at."""

    xorbs: int
    xorb_bytes: int
    contents: int
    files: int


def measure(engine: Engine) -> Extent:
    """Count what a check will look at."""
    with reading(engine) as session:
        xorbs, size = session.exec(select(func.count(), func.coalesce(func.sum(XorbRow.size), 0))).one()
        contents = session.exec(select(func.count()).select_from(ContentRow)).one()
        files = session.exec(select(func.count()).select_from(FileRow)).one()
    return Extent(xorbs, int(size), contents, files)


def count_missing(engine: Engine, blobs: Blobs) -> int:
    """Count the recorded xorbs that have no file."""
    return sum(blobs.lacks(name) for name in _keys(engine, col(XorbRow.digest)))


def check_xorbs(engine: Engine, blobs: Blobs, *, repair: bool, advance: Advance) -> Iterator[Finding]:
    """Decode every xorb; with `repair`, set the damaged ones aside."""
    for name in _keys(engine, col(XorbRow.digest)):
        with reading(engine) as session:
            row = session.get(XorbRow, name)
            finding = row and _look_at_xorb(blobs, row)
        advance(row.size if row else 0)
        if finding:
            yield from _confirmed_xorb(engine, blobs, name, repair=repair)


def check_contents(engine: Engine, *, repair: bool, advance: Advance) -> Iterator[Finding]:
    """Compute every file's hash anew; with `repair`, forget what is not what it claims and mend references."""
    for name in _keys(engine, col(ContentRow.digest)):
        with reading(engine) as session:
            row = session.get(ContentRow, name)
            is_whole = row is None or _is_whole(session, row)
        advance(1)
        if not is_whole:
            yield from _confirmed_content(engine, name, repair=repair)


def check_files(engine: Engine) -> Iterator[Finding]:
    """Look for files whose content is not stored, or has another size."""
    is_empty = col(FileRow.digest) == EMPTY
    is_other = col(ContentRow.digest).is_(None) | (col(ContentRow.size) != col(FileRow.size))
    query = (
        select(*_COLUMNS)
        .join(BucketRow, col(BucketRow.id) == col(FileRow.bucket_id))
        .join(ContentRow, col(ContentRow.digest) == col(FileRow.digest), isouter=True)
        .where(or_(is_empty & (col(FileRow.size) != 0), ~is_empty & is_other))
        .order_by(BucketRow.name, FileRow.path)
    )
    with reading(engine) as session:
        for bucket, path, digest, size, stored in session.execute(query.execution_options(yield_per=_PAGE)):
            why = f"its content {digest} is not stored" if stored is None else f"has {size} bytes, stored are {stored}"
            yield Finding("file", f"{bucket}: {path}", why)


def _confirmed_xorb(engine: Engine, blobs: Blobs, name: str, *, repair: bool) -> Iterator[Finding]:
    with writing(engine) as session:
        _hold_meters(session, repair=repair)
        row = session.get(XorbRow, name, with_for_update=True)
        finding = row and _look_at_xorb(blobs, row)
        if finding and finding.is_damage and repair:
            quarantine.set_xorb_aside(session, blobs, name)
    if finding:
        yield finding


def _hold_meters(session: Session, *, repair: bool) -> None:
    """Take what a repair forgets before the damaged row, as writers do."""
    if repair:
        quota_meter.hold_all(session)


def _look_at_xorb(blobs: Blobs, row: XorbRow) -> Finding | None:
    try:
        fault = inspection.xorb_fault(blobs, row)
    except OSError as error:  # too many open files, a right that was lost, a disk that hiccups: the bytes may be whole
        return Finding("xorb", row.digest, f"could not be read: {error.strerror or error}", is_damage=False)
    return Finding("xorb", row.digest, fault) if fault else None


def _confirmed_content(engine: Engine, name: str, *, repair: bool) -> Iterator[Finding]:
    with writing(engine) as session:
        _hold_meters(session, repair=repair)
        row = session.get(ContentRow, name, with_for_update=True)
        fault = row and inspection.content_fault(session, row)
        unnoted = inspection.missing_references(session, row) if row and not fault else set()
        if fault and repair:
            quarantine.set_contents_aside(session, [name])
        elif repair:
            quarantine.mend_references(session, name, sorted(unnoted))
    if fault:
        yield Finding("content", name, fault)
    yield from (Finding("content", name, f"built on the xorb {xorb} without a note of it") for xorb in sorted(unnoted))


def _is_whole(session: Session, row: ContentRow) -> bool:
    return not inspection.content_fault(session, row) and not inspection.missing_references(session, row)


def _keys(engine: Engine, column: Any) -> Iterator[str]:
    """Yield every key of a table in order, a page in a transaction of its own."""
    after = ""
    while True:
        with reading(engine) as session:
            page = session.scalars(select(column).where(column > after).order_by(column).limit(_PAGE)).all()
        yield from page
        if not page:
            return
        after = page[-1]
