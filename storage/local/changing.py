"""Make a batch of changes to one bucket in few statements."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete
from sqlmodel import Session, col

from storage import quota_meter
from storage.buckets import Change, Copy, Delete, FileNotInBucket, Put
from storage.local import contents, listing, names, upserts, writing
from storage.local.rows import FileRow
from storage.paths import BucketName, check_path, fold
from storage.quota_meter import Delta

if TYPE_CHECKING:
    from storage.local.buckets import LocalBuckets


def apply(store: "LocalBuckets", name: BucketName, changes: Sequence[Change], *, now: datetime) -> None:
    """Make changes in order; neighbours of one kind are made together.

    Raises:
        InvalidPath, NameTaken, FileNotInBucket, BucketNotFound: the caller rolls back.
    """
    bucket_id = store.id_of(name)
    quota_meter.lock(store.session, bucket_id)  # before all else, as in a client's batch: else two writers deadlock
    for change in changes:
        check_path(change.path, dot_led=True)
    deletions = {change.path: index for index, change in enumerate(changes) if isinstance(change, Delete)}
    done = 0
    for _, run in groupby(_keyed(name, changes), key=lambda pair: pair[0]):
        some = [change for _, change in run]
        done += len(some)
        if not isinstance(some[0], Delete):
            paths = [change.path for change in some]
            names.check(store.session, bucket_id, paths, leaves=names.later(deletions, done))
        if isinstance(some[0], Put):
            _put(store, bucket_id, [change for change in some if isinstance(change, Put)], now=now)
        elif isinstance(some[0], Copy):
            _copy(store, bucket_id, [change for change in some if isinstance(change, Copy)], now=now)
        else:
            remove(store.session, bucket_id, [change.path for change in some])


def place(session: Session, bucket_id: int, rows: Sequence[dict[str, Any]], *, now: datetime) -> None:
    """Write file rows (`path, digest, size, mtime_ms, content_type`), replacing those of the same path.

    Raises:
        Corrupt: a content is no longer stored.
    """
    contents.hold(session, {row["digest"] for row in rows}, now=now)
    _charge(session, bucket_id, rows)
    fixed = {"bucket_id": bucket_id, "uploaded_at": now}
    whole = [row | fixed | {"folded": fold(row["path"])} for row in rows]
    upserts.put(session, FileRow, whole, key=("bucket_id", "path"))


def remove(session: Session, bucket_id: int, paths: Sequence[str]) -> None:
    """Delete files.

    Raises:
        FileNotInBucket: one isn't there.
    """
    quota_meter.lock(session, bucket_id)
    there = listing.files_at(session, bucket_id, paths)
    left = {file.path for file in there}
    for path in paths:
        if path not in left:
            raise FileNotInBucket(f"There is no file {path!r:.200} to delete.")
        left.remove(path)
    quota_meter.charge(session, bucket_id, [Delta(file.digest, file.size, -1) for file in there])
    for some in upserts.slices(paths):
        session.execute(delete(FileRow).where(col(FileRow.bucket_id) == bucket_id, col(FileRow.path).in_(some)))


def _charge(session: Session, bucket_id: int, rows: Sequence[dict[str, Any]]) -> None:
    """Meter what writing these rows changes; of several at one path the last one stays."""
    if quota_meter.lock(session, bucket_id) is None:
        return
    last = {row["path"]: row for row in rows}
    gone = [Delta(file.digest, file.size, -1) for file in listing.files_at(session, bucket_id, sorted(last))]
    come = [Delta(row["digest"], row["size"], 1) for row in last.values()]
    quota_meter.charge(session, bucket_id, come + gone)


def _keyed(name: BucketName, changes: Sequence[Change]) -> Iterator[tuple[tuple[object, ...], Change]]:
    """Give changes that may be made together the same key; copies within the bucket see each other's effect."""
    for index, change in enumerate(changes):
        if isinstance(change, Copy):
            yield (Copy, change.source, index if change.source == name else -1), change
        else:
            yield (type(change),), change


def _put(store: "LocalBuckets", bucket_id: int, puts: Sequence[Put], *, now: datetime) -> None:
    written = [writing.write(store.session, store.blobs, put.content, now=now) for put in puts]
    contents.register(store.session, [content for content in written if content.terms], now=now)
    rows = [
        _row(put.path, content.name, content.size, put.content_type, now=now)
        for put, content in zip(puts, written, strict=True)
    ]
    place(store.session, bucket_id, rows, now=now)


def _copy(store: "LocalBuckets", bucket_id: int, copies: Sequence[Copy], *, now: datetime) -> None:
    source = copies[0].source
    found = {
        file.path: file
        for file in listing.files_at(store.session, store.id_of(source), [copy.source_path for copy in copies])
    }
    rows = []
    for copy in copies:
        file = found.get(copy.source_path)
        if file is None:
            raise FileNotInBucket(f"There is no file {copy.source_path!r:.200} in the bucket {source}.")
        rows.append(_row(copy.path, file.digest, file.size, file.content_type, now=now))
    place(store.session, bucket_id, rows, now=now)


def _row(path: str, digest: str, size: int, content_type: str | None, *, now: datetime) -> dict[str, Any]:
    mtime_ms = int(now.timestamp() * 1000)
    return {"path": path, "digest": digest, "size": size, "mtime_ms": mtime_ms, "content_type": content_type}
