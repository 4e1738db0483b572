"""Issue the short-lived tokens that the store's own calls carry."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from agents.tokens import Caller
from storage.local.buckets import LocalBuckets
from storage.paths import BucketName
from storage.site import Site
from web.deps import MaybeCaller, Read, TheSite, origin
from web.hub.access import TheWriter, bucket_name, local, readable, user_of, writable
from web.hub.routing import HubRoute
from web.hub.signing import Grant, Mode, Signer

router = APIRouter(route_class=HubRoute, tags=["hub"])


@router.get("/api/buckets/{namespace}/{name}/xet-write-token")
def write_token(
    request: Request, site: TheSite, session: Read, caller: TheWriter, namespace: str, name: str
) -> JSONResponse:
    """Let the caller upload to a bucket of theirs for a while."""
    store = local(site, session)
    bucket = writable(store, bucket_name(namespace, name, caller), caller.user).name
    return _issue(request, site, store, bucket, Mode.WRITE, caller)


@router.get("/api/buckets/{namespace}/{name}/xet-read-token")
def read_token(
    request: Request, site: TheSite, session: Read, caller: MaybeCaller, namespace: str, name: str
) -> JSONResponse:
    """Let the caller read what a bucket holds for a while."""
    store = local(site, session)
    bucket = readable(store, bucket_name(namespace, name, caller), user_of(caller)).name
    return _issue(request, site, store, bucket, Mode.READ, caller)


def _issue(
    request: Request, site: Site, store: LocalBuckets, bucket: BucketName, mode: Mode, caller: Caller | None
) -> JSONResponse:
    """Answer twice: the Rust half of the client reads the body, the Python half the headers.

    The store's address names its generation and the bucket. Clients remember per address what they
    uploaded, so neither a store that lost bytes nor another bucket is taken to have them.
    """
    bucket_id, generation = store.id_of(bucket), site.blobs.generation
    expires_s = int(site.clock().timestamp() + site.settings.store_token_life)
    token = Signer(site.secret, generation).token(Grant(bucket_id, mode, caller.token_id if caller else "", expires_s))
    url = f"{origin(request)}/cas/{generation}/{bucket_id}"
    headers = {"X-Xet-Cas-Url": url, "X-Xet-Token-Expiration": str(expires_s), "X-Xet-Access-Token": token}
    body = {"casUrl": url, "exp": expires_s, "accessToken": token}
    return JSONResponse(body, headers=headers | {"Cache-Control": "no-store"})
