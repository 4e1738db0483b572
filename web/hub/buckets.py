"""Make, show, list, hide, rename and delete buckets."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from storage.buckets import Bucket
from storage.clock import to_iso_ms
from storage.errors import Malformed
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName, parse_bucket
from web.deps import MaybeCaller, Read, TheCaller, TheSite, Write, origin
from web.hub.access import bucket_name, is_readable, local, readable, user_of, writable
from web.hub.naming import check_new_name
from web.hub.receiving import MAX_BODY_BYTES
from web.hub.routing import HubRoute
from web.text import Text

router = APIRouter(route_class=HubRoute, tags=["hub"], max_body_size=MAX_BODY_BYTES)


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
    caller: TheCaller,
    namespace: str,
    name: str,
    new: Annotated[NewBucket | None, Body()] = None,
) -> JSONResponse:
    """Make a bucket for the caller; one that is there already answers 409 with its address."""
    store, full = local(site, session), bucket_name(namespace, name, caller)
    check_new_name(site, session, full, caller)
    url = {"url": f"{origin(request)}/buckets/{full}", "name": str(full), "id": str(full)}
    if store.find(full) is not None:
        message = f"The bucket {full} exists already."
        return JSONResponse(url | {"error": message}, 409, {"X-Error-Message": message})
    store.create(full, owner=caller.user, private=bool(new and new.is_private))
    return JSONResponse(url)


@router.get("/api/buckets/{namespace}/{name}")
def info(site: TheSite, session: Read, caller: MaybeCaller, namespace: str, name: str) -> dict[str, Any]:
    """Describe a bucket."""
    store = local(site, session)
    return _describe(store, [readable(store, bucket_name(namespace, name, caller), user_of(caller))])[0]


@router.get("/api/buckets/{namespace}")
def list_buckets(
    site: TheSite, session: Read, caller: MaybeCaller, namespace: str, search: str = ""
) -> list[dict[str, Any]]:
    """List those buckets of a namespace that the caller may see."""
    store = local(site, session)
    owner = caller.user if namespace == "me" and caller else namespace
    found = store.in_namespace(owner)
    return _describe(store, [b for b in found if is_readable(b, user_of(caller)) and search in b.name.name])


@router.delete("/api/buckets/{namespace}/{name}", status_code=204)
def delete(site: TheSite, session: Write, caller: TheCaller, namespace: str, name: str) -> None:
    """Delete one of the caller's buckets with everything in it."""
    store = local(site, session)
    store.delete(writable(store, bucket_name(namespace, name, caller), caller.user).name)


@router.put("/api/buckets/{namespace}/{name}/settings")
def settings(
    site: TheSite, session: Write, caller: TheCaller, namespace: str, name: str, wanted: Visibility
) -> dict[str, Any]:
    """Hide or show one of the caller's buckets."""
    store = local(site, session)
    store.set_private(writable(store, bucket_name(namespace, name, caller), caller.user).name, wanted.private)
    return {"private": wanted.private}


@router.post("/api/repos/move")
def move(request: Request, site: TheSite, session: Write, caller: TheCaller, wanted: Move) -> dict[str, str]:
    """Rename one of the caller's buckets."""
    if wanted.type != "bucket":
        raise Malformed("Only buckets live here.")
    store, to = local(site, session), parse_bucket(wanted.toRepo)
    bucket = writable(store, parse_bucket(wanted.fromRepo), caller.user)
    check_new_name(site, session, to, caller)
    return {"url": f"{origin(request)}/buckets/{store.rename(bucket.name, to).name}"}


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
