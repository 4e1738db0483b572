"""Put uploaded contents into a bucket by hash, as the Hub's batch call does: each line on its own merits.

A hash opens nothing by itself. Adding asks that this bucket's writers uploaded it; copying, that the named
source bucket holds it now and the caller may read that bucket.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlmodel import col, select

from storage.errors import InvalidPath
from storage.local import changing, claims, contents, listing, upserts
from storage.local.buckets import LocalBuckets
from storage.local.claims import Claimed
from storage.local.contents import EMPTY
from storage.local.rows import FileRow
from storage.paths import BucketName, check_path


@dataclass(frozen=True)
class Add:
    """Make `path` hold the uploaded content `digest`; `mtime_ms` is what the uploader says, in Unix ms."""

    path: str
    digest: str
    mtime_ms: int
    content_type: str | None


@dataclass(frozen=True)
class Borrow:
    """Make `path` hold a content that the bucket `source` holds."""

    path: str
    digest: str
    source: BucketName
    content_type: str | None


@dataclass(frozen=True)
class Remove:
    """Delete `path`."""

    path: str


Operation = Add | Borrow | Remove


@dataclass(frozen=True)
class Refusal:
    """An operation that was not done, and why, in words for its sender."""

    path: str
    reason: str


def apply_each(
    store: LocalBuckets, name: BucketName, operations: Sequence[Operation], *, may_read: Callable[[BucketName], bool]
) -> list[Refusal]:
    """Do what can be done, in order, and return a refusal for everything else."""
    target = _Target(store, store.id_of(name), store.now())
    refusals: list[Refusal] = []
    for _, run in groupby(operations, key=_run_key):
        clean = [operation for operation in run if _is_clean(operation.path, refusals)]
        if not clean:
            continue
        if isinstance(clean[0], Add):
            refusals += _add(target, [operation for operation in clean if isinstance(operation, Add)])
        elif isinstance(clean[0], Borrow):
            copies = [operation for operation in clean if isinstance(operation, Borrow)]
            refusals += _borrow(target, copies, readable=may_read(copies[0].source))
        else:
            refusals += _remove(target, [operation.path for operation in clean])
    return refusals


@dataclass(frozen=True)
class _Target:
    store: LocalBuckets
    bucket_id: int
    now: datetime


def _run_key(operation: Operation) -> tuple[object, ...]:
    return (type(operation), operation.source if isinstance(operation, Borrow) else None)


def _is_clean(path: str, refusals: list[Refusal]) -> bool:
    try:
        check_path(path, dot_led=True)
    except InvalidPath as error:
        refusals.append(Refusal(path, error.message))
        return False
    return True


def _add(target: _Target, adds: Sequence[Add]) -> list[Refusal]:
    digests = {add.digest for add in adds} - {EMPTY}
    session = target.store.session
    held = claims.held(session, target.bucket_id, Claimed.CONTENT, digests)
    sizes = contents.sizes(session, held)
    rows = [_row(add, sizes[add.digest], add.mtime_ms, add.content_type) for add in adds if add.digest in sizes]
    changing.place(session, target.bucket_id, rows, now=target.now)
    reason = "this content was not uploaded to this bucket"
    return [Refusal(add.path, reason) for add in adds if add.digest not in sizes]


def _borrow(target: _Target, copies: Sequence[Borrow], *, readable: bool) -> list[Refusal]:
    held = _held_by(target.store, copies[0].source, {copy.digest for copy in copies}) if readable else {}
    now_ms = int(target.now.timestamp() * 1000)
    rows = [
        _row(copy, held[copy.digest][0], now_ms, copy.content_type or held[copy.digest][1])
        for copy in copies
        if copy.digest in held
    ]
    changing.place(target.store.session, target.bucket_id, rows, now=target.now)
    reason = f"the bucket {copies[0].source} holds no such content, or you may not read it"
    return [Refusal(copy.path, reason) for copy in copies if copy.digest not in held]


def _held_by(store: LocalBuckets, name: BucketName, digests: set[str]) -> dict[str, tuple[int, str | None]]:
    """Return size in bytes and content type of those contents that are files of the bucket."""
    found: dict[str, tuple[int, str | None]] = {}
    bucket_id = store.id_of(name)
    for some in upserts.slices(sorted(digests)):
        query = select(FileRow.digest, FileRow.size, FileRow.content_type).where(
            FileRow.bucket_id == bucket_id, col(FileRow.digest).in_(some)
        )
        found.update({digest: (size, content_type) for digest, size, content_type in store.session.exec(query)})
    return found


def _remove(target: _Target, paths: Sequence[str]) -> list[Refusal]:
    there = {file.path for file in listing.files_at(target.store.session, target.bucket_id, paths)}
    changing.remove(target.store.session, target.bucket_id, sorted(there))
    return [Refusal(path, "file not found") for path in paths if path not in there]


def _row(operation: Add | Borrow, size: int, mtime_ms: int, content_type: str | None) -> dict[str, Any]:
    return {
        "path": operation.path,
        "digest": operation.digest,
        "size": size,
        "mtime_ms": mtime_ms,
        "content_type": content_type,
    }
