"""Decide who may read and write a bucket over the Hub's protocol."""

from sqlmodel import Session

from agents.tokens import Caller
from storage.buckets import SYSTEM, Bucket, BucketNotFound
from storage.errors import Forbidden, NotFound
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName, parse_bucket
from storage.site import Site
from web.deps import TheBucketWriter


class NotYourBucket(Forbidden):
    """Only a bucket's owner writes it."""

    code = "BUCKET_NOT_OWNED_BY_CALLER"


class BucketsElsewhere(NotFound):
    """The race keeps its buckets at another Hub."""

    code = "BUCKETS_ELSEWHERE"


TheWriter = TheBucketWriter


def local(site: Site, session: Session) -> LocalBuckets:
    """Bind the embedded store, whose hashes this protocol speaks of.

    Raises:
        BucketsElsewhere: the race's buckets aren't here.
    """
    storage = site.challenge.storage
    if storage.backend != "local":
        raise BucketsElsewhere(f"This race keeps its buckets at {storage.address}.", hint="Set HF_ENDPOINT to that.")
    return LocalBuckets(session, site.blobs, clock=site.clock)


def bucket_name(namespace: str, name: str, caller: Caller | None) -> BucketName:
    """Read a bucket's name from a path, where `me` is the caller's own namespace.

    Raises:
        InvalidPath: it isn't one.
    """
    return parse_bucket(f"{caller.user if namespace == 'me' and caller else namespace}/{name}")


def is_readable(bucket: Bucket, user: str) -> bool:
    """Tell whether a user (`""` for anybody) may read a bucket."""
    return not bucket.private or (bool(user) and bucket.owner == user)


def is_writable(bucket: Bucket, user: str) -> bool:
    """Tell whether a user may write a bucket; the server's own buckets have no other writer."""
    return bool(user) and bucket.owner == user and bucket.owner != SYSTEM


def readable(store: LocalBuckets, name: BucketName, user: str) -> Bucket:
    """Return a bucket that the user may read.

    Raises:
        BucketNotFound: there is none, or it is private and another's: both answer alike.
    """
    bucket = store.find(name)
    if bucket is None or not is_readable(bucket, user):
        raise BucketNotFound(f"There is no bucket {name}, or you may not see it.")
    return bucket


def writable(store: LocalBuckets, name: BucketName, user: str) -> Bucket:
    """Return a bucket that the user may write.

    Raises:
        BucketNotFound: as `readable`.
        NotYourBucket: the user may read it but not write it.
    """
    bucket = readable(store, name, user)
    if not is_writable(bucket, user):
        raise NotYourBucket(f"The bucket {name} is written by its owner alone.")
    return bucket


def user_of(caller: Caller | None) -> str:
    """Name the caller, or `""`."""
    return caller.user if caller else ""
