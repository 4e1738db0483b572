"""Check the tokens that the store's calls carry, against the bucket as it is now.

A download of many small files is two calls for each. What only computes is `async` here, and the calls open
their own sessions: every dependency that isn't, and every session that is one, costs a hop between threads.
"""

from typing import Annotated

from fastapi import Depends, Request

from agents.tokens import Caller, find_holder
from storage.buckets import Bucket, BucketNotFound
from storage.errors import Forbidden, NotFound, Unauthorized
from storage.local.buckets import LocalBuckets
from storage.local.pins import pin
from storage.local.reach import Reach
from web.deps import TheSite, bearer
from web.hub.access import is_readable, user_of, writable
from web.hub.signing import Grant, Mode, Signer


class GenerationGone(NotFound):
    """The address belongs to an earlier life of the store; get a new token."""

    code = "STORE_GENERATION_GONE"


class ReadOnlyToken(Forbidden):
    """The access token only reads."""

    code = "READ_ONLY_TOKEN"


async def signer(site: TheSite, generation: str) -> Signer:
    """Return the signer of the generation that the address names.

    Raises:
        GenerationGone: it isn't the store's present one.
    """
    if generation != site.blobs.generation:
        raise GenerationGone("This store has started over; get a new access token.")
    return Signer(site.secret, generation)


TheSigner = Annotated[Signer, Depends(signer)]


async def the_grant(request: Request, site: TheSite, signer: TheSigner, bucket_id: int) -> Grant:
    """Return what the request's token allows in the bucket that the address names.

    Raises:
        Unauthorized: there is no valid token, or it is for another bucket.
    """
    token = bearer(request)
    if token is None:
        raise Unauthorized("This call needs an access token of the bucket.")
    grant = signer.grant(token, now=site.clock())
    if grant.bucket_id != bucket_id:
        raise Unauthorized("The access token is for another bucket.")
    return grant


async def the_write_grant(grant: Annotated[Grant, Depends(the_grant)]) -> Grant:
    """Return a grant to write.

    Raises:
        ReadOnlyToken: the token only reads.
    """
    if grant.mode is not Mode.WRITE:
        raise ReadOnlyToken("This call needs an access token that writes.")
    return grant


TheGrant = Annotated[Grant, Depends(the_grant)]
TheWriteGrant = Annotated[Grant, Depends(the_write_grant)]


def granted_bucket(store: LocalBuckets, grant: Grant) -> Bucket:
    """Return the grant's bucket, if its holder may still do with it what the grant says.

    Raises:
        Unauthorized: the token that the grant was given for was revoked or has expired.
        BucketNotFound: it was deleted, or hidden since; neither which, nor its name now, is told.
    """
    user, name = user_of(holder(store, grant)), store.name_of(grant.bucket_id)
    bucket = None if name is None else store.find(name)
    if bucket is None or not is_readable(bucket, user):
        raise BucketNotFound("The bucket of this access token is gone.")
    return writable(store, bucket.name, user) if grant.mode is Mode.WRITE else bucket


def kept_bucket(store: LocalBuckets, grant: Grant) -> Bucket:
    """Return the grant's bucket for a write: nobody deletes it before the transaction ends.

    Raises:
        Unauthorized, BucketNotFound, NotYourBucket: as `granted_bucket`.
    """
    bucket = granted_bucket(store, grant)
    pin(store.session, grant.bucket_id, alone=False)
    return bucket


def holder(store: LocalBuckets, grant: Grant) -> Caller | None:
    """Return whose access a grant is; None for anybody's.

    Raises:
        Unauthorized: the token that the grant was given for was revoked or has expired.
    """
    if not grant.token_id:
        return None
    caller = find_holder(store.session, grant.token_id, now=store.now())
    if caller is None:
        raise Unauthorized("The token behind this access is no longer valid.")
    return caller


def reach_of(store: LocalBuckets, grant: Grant) -> Reach:
    """Say what the grant's holder may build on when writing its bucket.

    Raises:
        Unauthorized, BucketNotFound, NotYourBucket: they may not write it any more.
    """
    granted_bucket(store, grant)
    return Reach(store.session, grant.bucket_id, user_of(holder(store, grant)))
