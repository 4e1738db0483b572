"""Remember what the writers of a bucket may build on: names of hashes open nothing by themselves."""

from collections.abc import Collection, Sequence
from enum import StrEnum

from sqlmodel import Session, col, select

from storage.local import upserts
from storage.local.rows import ClaimRow


class Claimed(StrEnum):
    """What kind of thing a claim is about.

    `CONTENT` was proved by a shard and `XORB` by its bytes, or granted because all of it could be read.
    `OFFERED` is a content that could be read when its chunks were offered: clients rely on it for days.
    """

    CONTENT = "content"
    XORB = "xorb"
    OFFERED = "offered"


def add(session: Session, bucket_id: int, kind: Claimed, digests: Sequence[str]) -> int:
    """Record claims; return how many are new to this bucket."""
    return upserts.insert_new(
        session, ClaimRow, [{"bucket_id": bucket_id, "kind": kind.value, "digest": digest} for digest in digests]
    )


def held(session: Session, bucket_id: int, kind: Claimed, digests: Collection[str]) -> set[str]:
    """Return those of `digests` that this bucket's writers hold."""
    found: set[str] = set()
    for some in upserts.slices(sorted(digests)):
        found.update(
            session.exec(
                select(ClaimRow.digest).where(
                    ClaimRow.bucket_id == bucket_id, ClaimRow.kind == kind.value, col(ClaimRow.digest).in_(some)
                )
            )
        )
    return found
