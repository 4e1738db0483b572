"""Look files up and list them, by ranges of the index on (bucket, path)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlmodel import Session, col, or_, select

from storage.buckets import StoredFile
from storage.local import upserts
from storage.local.rows import FileRow

_COLUMNS = (
    FileRow.path,
    FileRow.digest,
    FileRow.size,
    FileRow.mtime_ms,
    FileRow.uploaded_at,
    FileRow.content_type,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_AHEAD = timedelta(days=1)
_AFTER_SLASH = "0"  # the character that follows "/": `dir0` sorts behind everything below `dir/`


@dataclass(frozen=True)
class Folder:
    """A folder, as the first part that file paths have in common; `uploaded_at` is that of its first file."""

    path: str
    uploaded_at: datetime


def files_at(session: Session, bucket_id: int, paths: Sequence[str]) -> list[StoredFile]:
    """Return those files of `paths` that are there."""
    found: list[StoredFile] = []
    for some in upserts.slices(paths):
        query = _files(bucket_id).where(col(FileRow.path).in_(some)).order_by(FileRow.path)
        found += [_stored(row) for row in session.execute(query)]
    return found


def files_below(
    session: Session, bucket_id: int, prefix: str, *, after: str = "", limit: int | None = None
) -> list[StoredFile]:
    """List the file at `prefix` and all files below it, by path."""
    query = _files(bucket_id).where(col(FileRow.path) >= _next(after)).order_by(FileRow.path).limit(limit)
    if folder := prefix.rstrip("/"):
        below = (col(FileRow.path) > f"{folder}/") & (col(FileRow.path) < f"{folder}{_AFTER_SLASH}")
        query = query.where(or_(col(FileRow.path) == folder, below))
    return [_stored(row) for row in session.execute(query)]


def entries_in(session: Session, bucket_id: int, prefix: str, *, after: str, limit: int) -> list[StoredFile | Folder]:
    """List up to `limit` files and folders directly in the folder `prefix`.

    A folder's own files are jumped over, so a folder of a million files costs two look-ups.
    """
    base = f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else ""
    found: list[StoredFile | Folder] = []
    while len(found) < limit:
        page = files_below(session, bucket_id, prefix, after=after, limit=limit)
        if not page:
            break
        after = _gather(found, page, base, limit=limit)
    return found


def cursor_after(entry: StoredFile | Folder) -> str:
    """Say where a listing goes on behind `entry`: a folder's cursor ends in a slash."""
    return f"{entry.path}/" if isinstance(entry, Folder) else entry.path


def _gather(found: list[StoredFile | Folder], page: list[StoredFile], base: str, *, limit: int) -> str:
    """Add a page's new entries to `found`; return the cursor behind the last of them."""
    cursor = ""
    for file in page:
        if len(found) == limit:
            break
        if file.path < _next(cursor):  # inside a folder that is listed already
            continue
        head, slash, _ = file.path.removeprefix(base).partition("/")
        found.append(Folder(base + head, file.uploaded_at) if slash else file)
        cursor = cursor_after(found[-1])
    return cursor


def _next(cursor: str) -> str:
    """Return the first path that may follow a cursor; no path holds the control character used here."""
    if cursor.endswith("/"):
        return cursor[:-1] + _AFTER_SLASH
    return f"{cursor}\x01" if cursor else ""


def _files(bucket_id: int) -> Any:
    return select(*_COLUMNS).where(FileRow.bucket_id == bucket_id)  # type: ignore[call-overload]  # stubs stop at 4


def _stored(row: Any) -> StoredFile:
    sent = _EPOCH + timedelta(milliseconds=row.mtime_ms)
    return StoredFile(
        path=row.path,
        digest=row.digest,
        size=row.size,
        # The later of the two: a reader with a younger copy of other bytes must still fetch these. A clock that
        # is years ahead is not believed: whatever came after it would look old to every client.
        mtime=max(sent, row.uploaded_at) if sent - row.uploaded_at <= _MOST_AHEAD else row.uploaded_at,
        uploaded_at=row.uploaded_at,
        content_type=row.content_type,
    )


def holds(session: Session, bucket_id: int, digest: str) -> bool:
    """Tell whether any file of the bucket has that content."""
    query = select(FileRow.path).where(FileRow.bucket_id == bucket_id, FileRow.digest == digest)
    return session.exec(query.limit(1)).first() is not None
