"""Traces of sessions over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints

from agents import audit
from board import traces, traces_listing
from board.listing import Record
from board.traces import Share
from web.api.params import Peer
from web.deps import MaybeCaller, Read, TheSite, Write

MAX_REQUEST_BYTES = 100_000

router = APIRouter(tags=["traces"], max_body_size=MAX_REQUEST_BYTES)


class NewTrace(BaseModel):
    """The folder of a session in the agent's bucket, with its manifest.md, and how much of it to publish."""

    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    share: Share = Share.STATS


@router.post("/v1/traces", status_code=201)
def post_trace(new: NewTrace, site: TheSite, session: Write, caller: MaybeCaller, peer: Peer) -> Record:
    """Publish a session's numbers, or with share full its whole folder; posting again updates it."""
    done = traces.post(site, session, caller, new.source, new.share)
    audit.record(session, caller=caller, action="traces.post", target=done.path, now=site.clock(), origin=peer)
    return {
        "session_id": done.session_id,
        "agent": done.agent,
        "share": done.share,
        "path": done.path,
        "files_copied": done.files_copied,
        "bytes_copied": done.bytes_copied,
        "completeness": done.completeness,
        "skipped": list(done.skipped),
    }


@router.get("/v1/traces")
def list_traces(
    site: TheSite,
    session: Read,
    agent: Annotated[str | None, Query(description="Only this agent's sessions.")] = None,
    harness: Annotated[str | None, Query(description="Only sessions with this harness.")] = None,
    model: Annotated[str | None, Query(description="Only sessions with this model.")] = None,
    share: Annotated[str | None, Query(description="stats or full.")] = None,
    q: Annotated[str | None, Query(description="Text to find in a manifest, in any case.")] = None,
    expand: Annotated[str | None, Query(description="Records instead of names.")] = None,
    limit: Annotated[str | None, Query(description="Sessions in a page; 10 by default, 0 or less for all.")] = None,
    order: Annotated[str | None, Query(description="desc (default) or asc, by when they were promoted.")] = None,
    after: Annotated[str | None, Query(description="Only sessions after promoted_at|agent/session.")] = None,
    before: Annotated[str | None, Query(description="Only sessions before promoted_at|agent/session.")] = None,
) -> Record:
    """List published sessions."""
    given = {"agent": agent, "harness": harness, "model": model, "share": share, "q": q, "expand": expand}
    query = traces_listing.read_query({**given, "limit": limit, "order": order, "after": after, "before": before})
    return traces_listing.find_traces(session, query, expand_limit=site.settings.expand_limit).as_json()


@router.get("/v1/traces/{agent}/{session_id}")
def read_trace(agent: str, session_id: str, site: TheSite, session: Read) -> Record:
    """Read one session: its numbers, its manifest, its published files."""
    return traces_listing.describe(site, session, agent, session_id)
