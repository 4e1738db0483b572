"""Take xorbs and shards in."""

from typing import BinaryIO

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from storage.database import reading, writing
from storage.errors import NotFound
from storage.local import claims, ingest
from storage.local.claims import Claimed
from storage.site import Site
from storage.xet.hashes import Digest, from_text
from storage.xet.xorbs import MAX_XORB_BYTES
from web.deps import TheSite
from web.hub.access import local
from web.hub.granting import TheGrant, TheWriteGrant, granted_bucket
from web.hub.receiving import received
from web.hub.routing import HubRoute
from web.hub.signing import Grant

router = APIRouter(prefix="/cas/{generation}/{bucket_id}", route_class=HubRoute, tags=["store"])


@router.get("/v1/chunks/{prefix}/{digest}")
def known_chunk(site: TheSite, grant: TheGrant) -> None:
    """Know no chunk: clients then send it, and what is here already is not stored twice."""
    _still_granted(site, grant)
    raise NotFound("No xorb is offered for this chunk.")


@router.post("/v1/xorb-grants/{prefix}/{digest}")
def xorb_grant(site: TheSite, grant: TheWriteGrant, digest: str) -> JSONResponse:
    """Tell that this bucket's writers sent a xorb before (an interrupted upload goes on); else refer to the upload."""
    with reading(site.engine) as session:
        granted_bucket(local(site, session), grant)
        is_held = bool(claims.held(session, grant.bucket_id, Claimed.XORB, {digest}))
    if not is_held:
        raise NotFound("Send the xorb itself.")
    return JSONResponse({"was_inserted": False})


@router.post("/v1/xorbs/{prefix}/{digest}")
async def put_xorb(request: Request, site: TheSite, grant: TheWriteGrant, digest: str) -> JSONResponse:
    """Store a xorb whose every chunk was checked; tell whether it is new to this bucket."""
    name = from_text(digest)
    await run_in_threadpool(_still_granted, site, grant)
    async with received(request, site.blobs, max_bytes=MAX_XORB_BYTES) as file:
        was_inserted = await run_in_threadpool(_keep_xorb, site, grant, file, name)
    return JSONResponse({"was_inserted": was_inserted})


@router.post("/v2/shards")
async def put_shard_streaming(request: Request, site: TheSite, grant: TheWriteGrant) -> Response:
    """Register a shard's files; the answer is a stream of one frame."""
    await _register(request, site, grant)
    return Response('{"type":"result"}\n', media_type="application/x-ndjson")


@router.post("/v1/shards")
@router.post("/shards")
async def put_shard(request: Request, site: TheSite, grant: TheWriteGrant) -> JSONResponse:
    """Register a shard's files; 1 when any is new to this bucket, else 0."""
    return JSONResponse({"result": int(await _register(request, site, grant))})


@router.post("/v1/telemetry", status_code=204)
def telemetry(grant: TheGrant) -> None:
    """Take no notice of a client's measurements."""


async def _register(request: Request, site: Site, grant: Grant) -> bool:
    await run_in_threadpool(_still_granted, site, grant)
    async with received(request, site.blobs, max_bytes=ingest.MAX_SHARD_BYTES) as file:
        return await run_in_threadpool(_keep_shard, site, grant, file)


def _still_granted(site: Site, grant: Grant) -> None:
    with reading(site.engine) as session:
        granted_bucket(local(site, session), grant)


def _keep_xorb(site: Site, grant: Grant, file: BinaryIO, digest: Digest) -> bool:
    """Check before the database is locked, store while it is."""
    table = ingest.check_xorb(file, digest)
    with writing(site.engine) as session:
        granted_bucket(local(site, session), grant)
        return ingest.keep_xorb(session, site.blobs, file, table, digest, bucket_id=grant.bucket_id, now=site.clock())


def _keep_shard(site: Site, grant: Grant, file: BinaryIO) -> bool:
    with reading(site.engine) as session:
        verified = ingest.check_shard(session, file, bucket_id=grant.bucket_id)
    with writing(site.engine) as session:
        granted_bucket(local(site, session), grant)
        return ingest.register_shard(session, verified, bucket_id=grant.bucket_id, now=site.clock())
