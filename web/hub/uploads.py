"""Take xorbs and shards in."""

import json
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Body, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlmodel import Session
from starlette.concurrency import run_in_threadpool

from agents import audit
from storage.database import reading, writing
from storage.errors import NotFound, Unavailable
from storage.local import ingest
from storage.local.contents import Content
from storage.quota_foresight import OverQuota
from storage.site import Site
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.xorbs import MAX_XORB_BYTES
from web.api.params import Peer
from web.deps import TheSite
from web.hub import known, quotas
from web.hub.access import local
from web.hub.granting import TheGrant, TheWriteGrant, granted_bucket, holder, kept_bucket, reach_of
from web.hub.receiving import received
from web.hub.routing import HubRoute
from web.hub.sending import Octets
from web.hub.signing import Grant
from web.last_use import peer


class ShardUnfinished(Unavailable):
    """A part of the shard's files is registered; sent again, it goes on behind them."""

    code = "SHARD_UNFINISHED"


class Lines(Response):
    """One JSON value a line."""

    media_type = "application/x-ndjson"


class Announced(BaseModel):
    """What a client says of a xorb that it is about to send."""

    length: Annotated[int, Field(ge=0)] = 0


_BINARY = {"schema": {"type": "string", "format": "binary"}}
_OCTETS = {"requestBody": {"required": True, "content": {Octets.media_type: _BINARY}}}
"""How calls are described whose body FastAPI doesn't see, because it is read as it comes."""

router = APIRouter(prefix="/cas/{generation}/{bucket_id}", route_class=HubRoute, tags=["store"])


@router.get("/v1/chunks/{prefix}/{digest}", response_class=Octets)
def known_chunk(site: TheSite, grant: TheWriteGrant, digest: str) -> Response:
    """Tell which xorbs make the file that the chunk was seen in, if the bucket's writer could read it."""
    told = known.group_of(site, grant, from_text(digest))
    if told is None:
        raise NotFound("No xorb is offered for this chunk.")
    return Octets(told, headers={"Cache-Control": "no-store"})


@router.post("/v1/xorb-grants/{prefix}/{digest}")
def xorb_grant(
    site: TheSite, grant: TheWriteGrant, digest: str, asked: Annotated[Announced | None, Body()] = None
) -> JSONResponse:
    """Tell that a xorb needn't be sent: an interrupted upload goes on, or all of it could be read; else refer to it."""
    if not known.is_known(site, grant, digest):
        _may_send(site, grant, digest, asked.length if asked else 0)
        raise NotFound("Send the xorb itself.")
    return JSONResponse({"was_inserted": False})


@router.post("/v1/xorbs/{prefix}/{digest}", openapi_extra=_OCTETS)
async def put_xorb(request: Request, site: TheSite, grant: TheWriteGrant, origin: Peer, digest: str) -> JSONResponse:
    """Store a xorb whose every chunk was checked; tell whether it is new to this bucket."""
    name = from_text(digest)
    await run_in_threadpool(_may_send, site, grant, digest, quotas.announced(request))
    async with received(request, site.blobs, max_bytes=MAX_XORB_BYTES) as file:
        was_inserted = await run_in_threadpool(_keep_xorb, site, grant, file, name, origin)
    return JSONResponse({"was_inserted": was_inserted})


@router.post("/v2/shards", response_class=Lines, openapi_extra=_OCTETS)
async def put_shard_streaming(request: Request, site: TheSite, grant: TheWriteGrant) -> Response:
    """Register a shard's files; the answer is a stream of one frame, whose text reaches the client's user."""
    frame: dict[str, object] = {"type": "result"}
    try:
        await _register(request, site, grant)
    except OverQuota as error:
        frame = {"type": "error", "message": f"{error.message} {error.hint}", "retryable": False}
    return Lines(f"{json.dumps(frame)}\n")


@router.post("/v1/shards", openapi_extra=_OCTETS)
@router.post("/shards", openapi_extra=_OCTETS)
async def put_shard(request: Request, site: TheSite, grant: TheWriteGrant) -> JSONResponse:
    """Register a shard's files; 1 when any is new to this bucket, else 0."""
    return JSONResponse({"result": int(await _register(request, site, grant))})


@router.post("/v1/telemetry", status_code=204)
def telemetry(grant: TheGrant) -> None:
    """Take no notice of a client's measurements."""


async def _register(request: Request, site: Site, grant: Grant) -> bool:
    await run_in_threadpool(_still_granted, site, grant)
    async with received(request, site.blobs, max_bytes=ingest.MAX_SHARD_BYTES) as file:
        return await run_in_threadpool(_keep_shard, site, grant, file, peer(request))


def _still_granted(site: Site, grant: Grant) -> None:
    with reading(site.engine) as session:
        granted_bucket(local(site, session), grant)


def _may_send(site: Site, grant: Grant, digest: str, length: int) -> None:
    with reading(site.engine) as session:
        quotas.check_xorb(site, session, granted_bucket(local(site, session), grant), grant, digest, length)


def _keep_xorb(site: Site, grant: Grant, file: BinaryIO, digest: Digest, origin: str) -> bool:
    """Check before the database is locked, store while it is."""
    table = ingest.check_xorb(file, digest)
    with writing(site.engine) as session:
        bucket = kept_bucket(local(site, session), grant)
        quotas.check_xorb(site, session, bucket, grant, to_text(digest), table.size_bytes)
        _note(site, session, grant, "store.xorb", f"{bucket.name}: {to_text(digest)}", origin)
        return ingest.keep_xorb(session, site.blobs, file, table, digest, bucket_id=grant.bucket_id, now=site.clock())


def _keep_shard(site: Site, grant: Grant, file: BinaryIO, origin: str) -> bool:
    """Register what may be verified at once; clients send a shard again by themselves that was answered by a 503."""
    with reading(site.engine) as session:
        checked = ingest.check_shard(file, reach_of(local(site, session), grant))
    is_new = _keep_contents(site, grant, checked.contents, origin)
    if not checked.is_whole:
        raise ShardUnfinished(
            f"The shard is too much to verify at once; {len(checked.contents)} of its files are registered.",
            hint="Send it again for the rest.",
        )
    return is_new


def _keep_contents(site: Site, grant: Grant, verified: list[Content], origin: str) -> bool:
    with writing(site.engine) as session:
        bucket = kept_bucket(local(site, session), grant)
        quotas.check_files(site, session, bucket, grant, verified)
        _note(site, session, grant, "store.shard", f"{bucket.name}: {len(verified)} contents", origin)
        return ingest.register_shard(session, verified, bucket_id=grant.bucket_id, now=site.clock())


def _note(site: Site, session: Session, grant: Grant, action: str, target: str, origin: str) -> None:
    caller = holder(local(site, session), grant)
    audit.record(session, caller=caller, action=action, target=target, now=site.clock(), origin=origin)
