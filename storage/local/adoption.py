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
from storage.local import changing, claims, contents, listing, mentions, names, upserts
from storage.local.buckets import LocalBuckets
from storage.local.claims import Claimed
from storage.local.contents import EMPTY
from storage.local.names import Leaves
from storage.local.rows import BucketRow, ContentRow, FileRow
from storage.paths import BucketName, check_path
from storage.quota_admission import Admission
from storage.quota_limits import ByteLimits


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
    store: LocalBuckets,
    name: BucketName,
    operations: Sequence[Operation],
    *,
    may_read: Callable[[BucketName], bool],
    limits_of: Callable[[str], ByteLimits],
) -> list[Refusal]:
    """Do what can be done, in order, and return a refusal for everything else."""
    target = _target(store, name, operations, limits_of)
    refusals: list[Refusal] = []
    deletions = {each.path: index for index, each in enumerate(operations) if isinstance(each, Remove)}
    done = 0
    for _, run in groupby(operations, key=_run_key):
        some = list(run)
        done += len(some)
        clean = [operation for operation in some if _is_clean(operation.path, refusals)]
        if not isinstance(some[0], Remove):
            clean = _nameable(target, clean, refusals, leaves=names.later(deletions, done))
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
    admission: Admission


def _target(
    store: LocalBuckets, name: BucketName, operations: Sequence[Operation], limits_of: Callable[[str], ByteLimits]
) -> _Target:
    bucket_id = store.id_of(name)
    last = {operation.path: operation for operation in operations}
    leaving = [path for path, operation in last.items() if isinstance(operation, Remove)]

    def held(paths: Sequence[str]) -> dict[str, tuple[str, int]]:
        there = listing.files_at(store.session, bucket_id, paths)
        return {file.path: (file.digest, file.size) for file in there}

    admission = Admission(store.session, bucket_id, limits_of, held=held, leaving=leaving)
    named = {operation.digest for operation in operations if not isinstance(operation, Remove)}
    mentions.lock(store.session, ContentRow, named)  # all at once, in order; each line's turn is too late for that
    return _Target(store, bucket_id, store.now(), admission)


def _place(target: _Target, rows: Sequence[dict[str, Any]]) -> list[Refusal]:
    """Write the rows that their owner's quota has room for."""
    admitted = target.admission.admit(rows)
    changing.place(target.store.session, target.bucket_id, admitted.rows, now=target.now)
    return [Refusal(path, reason) for path, reason in admitted.refused]


def _run_key(operation: Operation) -> tuple[object, ...]:
    return (type(operation), operation.source if isinstance(operation, Borrow) else None)


def _is_clean(path: str, refusals: list[Refusal]) -> bool:
    try:
        check_path(path, dot_led=True)
    except InvalidPath as error:
        refusals.append(Refusal(path, error.message))
        return False
    return True


def _nameable(
    target: _Target, operations: Sequence[Operation], refusals: list[Refusal], *, leaves: Leaves
) -> list[Operation]:
    """Return those operations whose names may stand side by side with what is there."""
    paths = [operation.path for operation in operations]
    faults = names.collisions(target.store.session, target.bucket_id, paths, leaves=leaves)
    refusals += [Refusal(each.path, faults[each.path]) for each in operations if each.path in faults]
    return [operation for operation in operations if operation.path not in faults]


def _add(target: _Target, adds: Sequence[Add]) -> list[Refusal]:
    digests = {add.digest for add in adds} - {EMPTY}
    session = target.store.session
    held = claims.held(session, target.bucket_id, Claimed.CONTENT, digests)
    contents.mention(session, held, now=target.now)
    sizes = contents.sizes(session, held)
    rows = [_row(add, sizes[add.digest], add.mtime_ms, add.content_type) for add in adds if add.digest in sizes]
    reason = "this content was not uploaded to this bucket"
    return _place(target, rows) + [Refusal(add.path, reason) for add in adds if add.digest not in sizes]


def _borrow(target: _Target, copies: Sequence[Borrow], *, readable: bool) -> list[Refusal]:
    held = _held_by(target.store, copies[0].source, {copy.digest for copy in copies}) if readable else {}
    contents.mention(target.store.session, held, now=target.now)
    there = contents.sizes(target.store.session, held)
    held = {digest: found for digest, found in held.items() if digest in there}  # what was damaged has no bytes
    now_ms = int(target.now.timestamp() * 1000)
    rows = [
        _row(copy, held[copy.digest][0], now_ms, copy.content_type or held[copy.digest][1])
        for copy in copies
        if copy.digest in held
    ]
    reason = f"the bucket {copies[0].source} holds no such content, or you may not read it"
    return _place(target, rows) + [Refusal(copy.path, reason) for copy in copies if copy.digest not in held]


def _held_by(store: LocalBuckets, name: BucketName, digests: set[str]) -> dict[str, tuple[int, str | None]]:
    """Return size in bytes and content type of those contents that are files of the bucket."""
    found: dict[str, tuple[int, str | None]] = {}
    for some in upserts.slices(sorted(digests)):
        query = (
            select(FileRow.digest, FileRow.size, FileRow.content_type)
            .join(BucketRow, col(BucketRow.id) == col(FileRow.bucket_id))
            .where(BucketRow.name == str(name), col(FileRow.digest).in_(some))
        )
        found.update({digest: (size, content_type) for digest, size, content_type in store.session.exec(query)})
    return found


def _remove(target: _Target, paths: Sequence[str]) -> list[Refusal]:
    left = {file.path for file in listing.files_at(target.store.session, target.bucket_id, paths)}
    changing.remove(target.store.session, target.bucket_id, sorted(left))
    refusals: list[Refusal] = []
    for path in paths:  # the second of two lines finds nothing any more, as if others stood between them
        if path in left:
            left.remove(path)
        else:
            refusals.append(Refusal(path, "file not found"))
    return refusals


def _row(operation: Add | Borrow, size: int, mtime_ms: int, content_type: str | None) -> dict[str, Any]:
    return {
        "path": operation.path,
        "digest": operation.digest,
        "size": size,
        "mtime_ms": mtime_ms,
        "content_type": content_type,
    }
