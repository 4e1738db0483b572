"""Make, show, list, hide, rename and delete buckets."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from agents import audit
from storage.buckets import Bucket, BucketExists
from storage.clock import to_iso_ms
from storage.errors import Malformed, Unauthorized
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName, parse_bucket
from web.api.params import Peer
from web.deps import MaybeCaller, Read, TheSite, Write, origin
from web.hub import quotas
from web.hub.access import TheWriter, bucket_name, is_readable, local, readable, user_of, writable
from web.hub.naming import check_new_name, check_number
from web.hub.paging import next_link
from web.hub.receiving import MAX_BODY_BYTES
from web.hub.routing import HubRoute
from web.text import Text

router = APIRouter(route_class=HubRoute, tags=["hub"], max_body_size=MAX_BODY_BYTES)

PAGE = 100
"""Buckets in a page of a listing, unless the client asks for fewer."""


class NewBucket(BaseModel):
    """What a client may say about a bucket it makes; resource groups and regions mean nothing here."""

    visibility: Literal["public", "private"] | None = None
    private: bool | None = None

    @property
    def is_private(self) -> bool:
        """Whether the bucket is to be hidden from others."""
        return self.visibility == "private" or bool(self.private)


class Visibility(BaseModel):
    """Whether a bucket is hidden from others."""

    private: bool


class Move(BaseModel):
    """A rename, in the words of the Hub's repositories."""

    fromRepo: Text  # noqa: N815 - the Hub's name
    toRepo: Text  # noqa: N815 - the Hub's name
    type: str = "bucket"


@router.post("/api/buckets/{namespace}/{name}")
def create(
    request: Request,
    site: TheSite,
    session: Write,
    caller: TheWriter,
    peer: Peer,
    namespace: str,
    name: str,
    new: Annotated[NewBucket | None, Body()] = None,
) -> JSONResponse:
    """Make a bucket for the caller; one that is there already answers 409 with its address."""
    store, full = local(site, session), bucket_name(namespace, name, caller)
    store.reserve(full)
    url = {"url": f"{origin(request)}/buckets/{full}", "name": str(full), "id": str(full)}
    if _is_visible(store, full, caller.user):
        message = f"The bucket {full} exists already"
        return JSONResponse(
            url | {"error": f"{message}."}, 409, {"X-Error-Code": BucketExists.code, "X-Error-Message": message}
        )
    check_new_name(site, store, full, caller)
    check_number(site, store, caller)
    store.create(full, owner=caller.user, private=bool(new and new.is_private))
    audit.record(session, caller=caller, action="buckets.create", target=str(full), now=site.clock(), origin=peer)
    return JSONResponse(url)


@router.get("/api/buckets/{namespace}/{name}")
def info(site: TheSite, session: Read, caller: MaybeCaller, namespace: str, name: str) -> dict[str, Any]:
    """Describe a bucket; to its owner also what their quota has left."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller))
    return _describe(store, [bucket])[0] | quotas.described(site, store, bucket, user_of(caller))


@router.get("/api/buckets/{namespace}")
def list_buckets(
    request: Request,
    response: Response,
    site: TheSite,
    session: Read,
    caller: MaybeCaller,
    namespace: str,
    search: str = "",
    cursor: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = PAGE,
) -> list[dict[str, Any]]:
    """List those buckets of a namespace (`me`: the caller's own) that the caller may see, a page at a time."""
    if namespace == "me" and caller is None:
        raise Unauthorized("Whose buckets? 'me' needs a token.")
    store = local(site, session)
    owner = caller.user if namespace == "me" and caller else namespace
    seen = [bucket for bucket in store.in_namespace(owner) if is_readable(bucket, user_of(caller))]
    found = [bucket for bucket in seen if search in bucket.name.name and bucket.name.name > cursor]
    if len(found) > limit:
        response.headers["Link"] = next_link(request, found[limit - 1].name.name)
    return _describe(store, found[:limit])


@router.delete("/api/buckets/{namespace}/{name}", status_code=204)
def delete(site: TheSite, session: Write, caller: TheWriter, peer: Peer, namespace: str, name: str) -> None:
    """Delete one of the caller's buckets with everything in it."""
    store = local(site, session)
    bucket = writable(store, bucket_name(namespace, name, caller), caller.user).name
    store.delete(bucket)
    audit.record(session, caller=caller, action="buckets.delete", target=str(bucket), now=site.clock(), origin=peer)


@router.put("/api/buckets/{namespace}/{name}/settings")
def settings(
    site: TheSite, session: Write, caller: TheWriter, peer: Peer, namespace: str, name: str, wanted: Visibility
) -> dict[str, Any]:
    """Hide or show one of the caller's buckets."""
    store = local(site, session)
    bucket = writable(store, bucket_name(namespace, name, caller), caller.user).name
    store.set_private(bucket, wanted.private)
    target = f"{bucket} {'private' if wanted.private else 'public'}"
    audit.record(session, caller=caller, action="buckets.settings", target=target, now=site.clock(), origin=peer)
    return {"private": wanted.private}


@router.post("/api/repos/move")
def move(
    request: Request, site: TheSite, session: Write, caller: TheWriter, peer: Peer, wanted: Move
) -> dict[str, str]:
    """Rename one of the caller's buckets."""
    if wanted.type != "bucket":
        raise Malformed("Only buckets live here.")
    store, to = local(site, session), parse_bucket(wanted.toRepo)
    store.reserve(to)
    bucket = writable(store, parse_bucket(wanted.fromRepo), caller.user).name
    if not _is_visible(store, to, caller.user):  # else the rename says that it exists
        check_new_name(site, store, to, caller)
    store.rename(bucket, to)
    target = f"{bucket} to {to}"
    audit.record(session, caller=caller, action="buckets.move", target=target, now=site.clock(), origin=peer)
    return {"url": f"{origin(request)}/buckets/{to}"}


def _is_visible(store: LocalBuckets, name: BucketName, user: str) -> bool:
    bucket = store.find(name)
    return bucket is not None and is_readable(bucket, user)


def _describe(store: LocalBuckets, buckets: list[Bucket]) -> list[dict[str, Any]]:
    usage = store.usage([bucket.name for bucket in buckets])
    return [_record(bucket, *usage[bucket.name]) for bucket in buckets]


def _record(bucket: Bucket, size_bytes: int, files: int) -> dict[str, Any]:
    name: BucketName = bucket.name
    return {
        "id": str(name),
        "author": name.namespace,
        "owner": bucket.owner,
        "private": bucket.private,
        "createdAt": to_iso_ms(bucket.created_at),
        "size": size_bytes,
        "totalFiles": files,
    }
