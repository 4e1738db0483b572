"""Hold uploads to their owner's quota as early as the client says their size, and describe that quota."""

from collections.abc import Sequence
from typing import Any

from fastapi import Request
from sqlmodel import Session

from agents.quotas import measure_bytes
from storage import quota_foresight, quota_meter
from storage.buckets import SYSTEM, Bucket
from storage.local.buckets import LocalBuckets
from storage.local.contents import Content
from storage.quota_limits import byte_limits
from storage.site import Site
from web.hub.signing import Grant


def announced(request: Request) -> int:
    """Return the length that a request gives for its body, in bytes, or 0."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdigit() and len(length) < 20 else 0


def check_xorb(site: Site, session: Session, bucket: Bucket, grant: Grant, digest: str, length: int) -> None:
    """Make sure that the xorb `digest` of `length` bytes may become part of a file.

    Raises:
        OverQuota: its owner's limits leave no room for it.
    """
    limits = byte_limits(session, site.challenge.limits, bucket.owner)
    quota_foresight.check_xorb(
        session,
        limits,
        owner=bucket.owner,
        bucket_id=grant.bucket_id,
        digest=digest,
        length=length,
        now=site.clock(),
    )


def check_files(site: Site, session: Session, bucket: Bucket, grant: Grant, files: Sequence[Content]) -> None:
    """Make sure that the files of a shard may be put into the bucket.

    Raises:
        OverQuota: its owner's limits leave no room for them.
    """
    limits = byte_limits(session, site.challenge.limits, bucket.owner)
    sizes = list({file.name: file.size for file in files}.values())
    quota_foresight.check_files(session, limits, owner=bucket.owner, bucket_id=grant.bucket_id, sizes=sizes)


def described(site: Site, store: LocalBuckets, bucket: Bucket, user: str) -> dict[str, Any]:
    """Say how many bytes of different chunks a bucket holds, and to its owner what their quota has left.

    The server's own buckets have no meter. One that must be made anew is left out for others than the owner: nobody
    has somebody else's files counted by asking.
    """
    if bucket.owner == SYSTEM:
        return {}
    bucket_id = store.id_of(bucket.name)
    if user != bucket.owner:
        metered = quota_meter.metered_bucket_usage(store.session, bucket_id)
        return {"storedBytes": metered.stored} if metered else {}
    stored = quota_meter.bucket_usage(store.session, bucket_id).stored
    return {"storedBytes": stored, "quota": _quota(site, store.session, user)}


def _quota(site: Site, session: Session, owner: str) -> dict[str, dict[str, int | None]]:
    """Say what a person uses of their limits, all their buckets together."""
    standing = measure_bytes(session, site.challenge.limits, owner)
    return {each.kind.name: {"used": each.used, "limit": each.limit, "remaining": each.remaining} for each in standing}
