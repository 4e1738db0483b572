"""Refuse an upload before its bytes have come, once no batch could make files of it.

A batch may replace everything that its bucket holds, so an upload is hopeless when it, with what was sent in the last
hour and is in no file yet, is more than the limit leaves beside the owner's other buckets. A quarter of the limit is
spared on top for what an interrupted upload left behind.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session, col, func, select

from storage import quota_meter as meter
from storage.errors import TooLarge
from storage.local.claims import Claimed
from storage.local.rows import ClaimRow, XorbRow
from storage.quota_admission import excess
from storage.quota_limits import ByteLimits
from storage.quota_rows import MeteredXorbRow
from storage.quota_tally import Usage

UNUSED_COUNTS_FOR = timedelta(hours=1)
_SPARED = 4
"""The slack is a limit divided by this."""


class OverQuota(TooLarge):
    """The upload can't become files within its owner's limits; nothing of it was kept."""

    code = "OVER_QUOTA"


def check_xorb(
    session: Session, limits: ByteLimits, *, owner: str, bucket_id: int, digest: str, length: int, now: datetime
) -> None:
    """Make sure that the xorb `digest` of `length` bytes may still find its place.

    Raises:
        OverQuota: it can't.
    """
    elsewhere = _elsewhere(session, owner, bucket_id)
    coming = _unused(session, bucket_id, besides=digest, since=now - UNUSED_COUNTS_FOR) + length
    spared = ByteLimits(_with_slack(limits.size), _with_slack(limits.stored), None)
    _check(spared, elsewhere, Usage(elsewhere.size + coming, elsewhere.stored + coming, elsewhere.files), owner)


def check_files(session: Session, limits: ByteLimits, *, owner: str, bucket_id: int, sizes: Sequence[int]) -> None:
    """Make sure that files of these sizes, in bytes, would fit into the bucket if it held nothing else.

    Raises:
        OverQuota: they don't.
    """
    elsewhere = _elsewhere(session, owner, bucket_id)
    # Together they may repeat each other's chunks, so of different ones there are at least none.
    whole = Usage(elsewhere.size + sum(sizes), elsewhere.stored, elsewhere.files + len(sizes))
    _check(limits, elsewhere, whole, owner)


def _check(limits: ByteLimits, elsewhere: Usage, after: Usage, owner: str) -> None:
    broken = excess(limits, elsewhere, after)
    if broken is not None:
        raise OverQuota(
            f"Over quota: this upload has at least {broken.used - broken.was:,} {broken.unit}, and {owner}'s buckets "
            f"may hold {broken.limit:,} together.",
            hint="Send less, or ask an operator for more.",
        )


def _with_slack(limit: int | None) -> int | None:
    return None if limit is None else limit + limit // _SPARED


def _elsewhere(session: Session, owner: str, bucket_id: int) -> Usage:
    """Return what the owner's other buckets hold at least: chunks that they share with this one count for it."""
    whole, own = meter.owner_usage(session, owner), meter.bucket_usage(session, bucket_id)
    return Usage(whole.size - own.size, whole.stored - own.stored, whole.files - own.files)


def _unused(session: Session, bucket_id: int, *, besides: str, since: datetime) -> int:
    """Sum the unpacked bytes of other xorbs that this bucket's writers sent lately and that none of its files uses."""
    used = select(MeteredXorbRow.xorb).where(MeteredXorbRow.scope == meter.bucket_scope(bucket_id))
    query = (
        select(func.coalesce(func.sum(XorbRow.unpacked), 0))
        .join(ClaimRow, col(ClaimRow.digest) == col(XorbRow.digest))
        .where(
            ClaimRow.bucket_id == bucket_id,
            ClaimRow.kind == Claimed.XORB.value,
            XorbRow.digest != besides,
            col(XorbRow.mentioned_at) > since,
            col(XorbRow.digest).not_in(used),
        )
    )
    return int(session.exec(query).one())
