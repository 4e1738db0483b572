"""Keep what every owner and every bucket uses, in the transaction that changes the files.

A scope's meter is made from its files when it is first needed and kept up by differences from then on. The server's
own buckets have none. How it counts: docs/decisions/0010.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from storage.buckets import SYSTEM
from storage.database import hold
from storage.local import upserts
from storage.local.pins import pin
from storage.local.rows import BucketRow, FileRow
from storage.quota_rows import MeteredContentRow, MeteredXorbRow, MeterRow
from storage.quota_shapes import Shapes
from storage.quota_tally import MeterDrifted, Tally, Usage

_TABLES = (MeterRow, MeteredContentRow, MeteredXorbRow)


@dataclass(frozen=True)
class Delta:
    """`by` more files (or, negative, fewer) of a content of `size` bytes."""

    digest: str
    size: int
    by: int


def owner_scope(owner: str) -> str:
    """Name the scope of everything that a person owns."""
    return f"owner:{owner}"


def bucket_scope(bucket_id: int) -> str:
    """Name the scope of one bucket."""
    return f"bucket:{bucket_id}"


def owner_usage(session: Session, owner: str) -> Usage:
    """Return what a person's buckets come to together."""
    return _usage(session, owner_scope(owner))


def bucket_usage(session: Session, bucket_id: int) -> Usage:
    """Return what one bucket comes to."""
    return _usage(session, bucket_scope(bucket_id))


def metered_bucket_usage(session: Session, bucket_id: int) -> Usage | None:
    """Return what one bucket comes to if its meter is there: strangers may ask, and must not have it counted."""
    return _metered(session, bucket_scope(bucket_id))


def by_bucket(session: Session, owner: str) -> dict[str, Usage]:
    """Return what each of a person's buckets comes to, by name."""
    query = select(BucketRow.name, BucketRow.id).where(BucketRow.owner == owner).order_by(BucketRow.name)
    return {name: bucket_usage(session, bucket_id) for name, bucket_id in session.exec(query).all()}


def lock(session: Session, bucket_id: int) -> str | None:
    """Hold a bucket, and its owner's meter, until the transaction ends; return the owner, None for the server itself.

    Take it before reading what is to be changed: the next writer of the same bucket or owner waits here.

    Raises:
        BucketNotFound: the bucket is gone.
    """
    owner = pin(session, bucket_id, alone=True)
    if owner == SYSTEM:
        return None
    hold(session, [owner_scope(owner)])
    return owner


def charge(session: Session, bucket_id: int, deltas: Sequence[Delta]) -> None:
    """Write a change of files into the meters, before the files change."""
    owner = lock(session, bucket_id)
    if owner is not None:
        shapes = Shapes(session)
        for scope in (owner_scope(owner), bucket_scope(bucket_id)):
            _charge(session, scope, deltas, shapes)


def close(session: Session, bucket_id: int) -> None:
    """Take a bucket that is about to be deleted out of the meters."""
    owner = lock(session, bucket_id)
    if owner is not None:
        try:
            for some in _batches(_files_of(session, bucket_scope(bucket_id))):
                gone = [Delta(delta.digest, delta.size, -delta.by) for delta in some]
                _apply(session, owner_scope(owner), gone, Shapes(session))
        except MeterDrifted:
            _drop(session, owner_scope(owner))
        _drop(session, bucket_scope(bucket_id))


def recast(session: Session, digests: Sequence[str]) -> None:
    """Forget the meters over files that already name one of these contents, whose layout was not known until now."""
    holders: set[tuple[str, int]] = set()
    for some in upserts.slices(digests):
        query = select(BucketRow.owner, BucketRow.id).join(FileRow, col(FileRow.bucket_id) == col(BucketRow.id))
        named = col(FileRow.digest).in_(some)
        holders.update(session.exec(query.where(named, BucketRow.owner != SYSTEM).distinct()).all())
    owners = {owner_scope(owner) for owner, _ in holders}
    hold(session, owners)
    for scope in sorted(owners | {bucket_scope(bucket_id) for _, bucket_id in holders}):
        _drop(session, scope)


def hold_all(session: Session) -> None:
    """Hold every owner's meter until the transaction ends."""
    hold(session, map(owner_scope, session.exec(select(BucketRow.owner).distinct())))


def forget(session: Session) -> None:
    """Drop every meter, so that each is made from its files again; for repairs that change contents or xorbs."""
    hold_all(session)
    for table in _TABLES:
        session.execute(delete(table))


def tally(session: Session, scope: str, digests: Iterable[str], shapes: Shapes) -> Tally:
    """Load the meter of a scope with what changing these contents needs; nothing is written but a missing meter."""
    wanted = sorted(set(digests))
    shapes.fetch(wanted)
    now = _metered(session, scope) or _rebuild(session, scope)
    loaded = Tally(shapes, now.size, now.stored, now.files)
    for some in upserts.slices(wanted):
        query = select(MeteredContentRow.digest, MeteredContentRow.files).where(
            MeteredContentRow.scope == scope, col(MeteredContentRow.digest).in_(some)
        )
        loaded.files_of.update(session.exec(query).all())
    xorbs = {span.xorb for digest in wanted for span in shapes.spans(digest)}
    for some in upserts.slices(sorted(xorbs)):
        uses = select(MeteredXorbRow.xorb, MeteredXorbRow.uses).where(
            MeteredXorbRow.scope == scope, col(MeteredXorbRow.xorb).in_(some)
        )
        loaded.uses.update({xorb: _unpack(raw) for xorb, raw in session.exec(uses)})
    return loaded


def _usage(session: Session, scope: str) -> Usage:
    """Read a meter, or count a scope that has none yet without keeping the count: readers write nothing."""
    return _metered(session, scope) or _counted(session, scope).usage


def _metered(session: Session, scope: str) -> Usage | None:
    found = session.exec(select(MeterRow.size, MeterRow.stored, MeterRow.files).where(MeterRow.scope == scope)).first()
    return Usage(*found) if found else None


def _charge(session: Session, scope: str, deltas: Sequence[Delta], shapes: Shapes) -> None:
    try:
        _apply(session, scope, deltas, shapes)
    except MeterDrifted:
        _drop(session, scope)
        _apply(session, scope, deltas, shapes)


def _apply(session: Session, scope: str, deltas: Sequence[Delta], shapes: Shapes) -> None:
    loaded = tally(session, scope, [delta.digest for delta in deltas], shapes)
    for delta in deltas:
        loaded.change(delta.digest, size=delta.size, by=delta.by)
    _save(session, scope, loaded)


def _rebuild(session: Session, scope: str) -> Usage:
    counted = _counted(session, scope)
    _save(session, scope, counted)
    return counted.usage


def _counted(session: Session, scope: str) -> Tally:
    shapes = Shapes(session)
    counted = Tally(shapes)
    for some in _batches(_files_of(session, scope)):
        shapes.fetch([delta.digest for delta in some])
        for delta in some:
            counted.change(delta.digest, size=delta.size, by=delta.by)
    return counted


def _files_of(session: Session, scope: str) -> list[Delta]:
    kind, _, name = scope.partition(":")
    where: Any = BucketRow.owner == name if kind == "owner" else BucketRow.id == int(name)
    query = (
        select(FileRow.digest, func.max(FileRow.size), func.count())
        .join(BucketRow, col(FileRow.bucket_id) == col(BucketRow.id))
        .where(where)
        .group_by(FileRow.digest)
    )
    return [Delta(digest, size, count) for digest, size, count in session.exec(query)]


def _batches(deltas: list[Delta]) -> Iterable[list[Delta]]:
    for start in range(0, len(deltas), upserts.IN_LIMIT):
        yield deltas[start : start + upserts.IN_LIMIT]


def _save(session: Session, scope: str, changed: Tally) -> None:
    total = {"scope": scope, "size": changed.size, "stored": changed.stored, "files": changed.files}
    upserts.put(session, MeterRow, [total], key=("scope",))
    files = [{"scope": scope, "digest": digest, "files": count} for digest, count in changed.files_of.items() if count]
    upserts.put(session, MeteredContentRow, files, key=("scope", "digest"))
    uses = [{"scope": scope, "xorb": xorb, "uses": _pack(raw)} for xorb, raw in changed.uses.items() if any(raw)]
    upserts.put(session, MeteredXorbRow, uses, key=("scope", "xorb"))
    _remove(session, MeteredContentRow.digest, scope, [name for name, count in changed.files_of.items() if not count])
    _remove(session, MeteredXorbRow.xorb, scope, [xorb for xorb, raw in changed.uses.items() if not any(raw)])


def _remove(session: Session, column: Any, scope: str, names: list[str]) -> None:
    table = column.class_
    for some in upserts.slices(sorted(names)):
        session.execute(delete(table).where(col(table.scope) == scope, col(column).in_(some)))


def _drop(session: Session, scope: str) -> None:
    for table in _TABLES:
        session.execute(delete(table).where(col(table.scope) == scope))


def _pack(values: "array[int]") -> bytes:
    return _little(values).tobytes()


def _unpack(raw: bytes) -> "array[int]":
    return _little(array("I", raw))


def _little(values: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values
