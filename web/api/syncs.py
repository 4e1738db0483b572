"""Copies into the central bucket over HTTP."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, StringConstraints

from agents import audit
from board import syncs
from board.listing import Record
from web.api.params import Peer
from web.deps import MaybeCaller, TheSite, Write

MAX_REQUEST_BYTES = 100_000

router = APIRouter(tags=["artifacts"], max_body_size=MAX_REQUEST_BYTES)

Place = Annotated[str, StringConstraints(min_length=1, max_length=2000)]


class ArtifactSync(BaseModel):
    """A file or folder of the agent's bucket, and the slug of the artifacts' folder that it goes into."""

    model_config = ConfigDict(extra="forbid")

    source: Place
    dest_slug: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class SharedSync(BaseModel):
    """A file or folder of the agent's bucket, and its place under shared_resources/ with _{agent} in it."""

    model_config = ConfigDict(extra="forbid")

    source: Place
    dest_path: Place


@router.post("/v1/artifacts:sync")
def sync_artifacts(wish: ArtifactSync, site: TheSite, session: Write, caller: MaybeCaller, peer: Peer) -> Record:
    """Copy a file or folder from your bucket into artifacts/{slug}_{agent}/."""
    done = syncs.sync_artifacts(site, session, caller, wish.source, wish.dest_slug)
    audit.record(session, caller=caller, action="artifacts.sync", target=done.dest, now=site.clock(), origin=peer)
    return done.as_json()


@router.post("/v1/shared-resources:sync")
def sync_shared_resources(wish: SharedSync, site: TheSite, session: Write, caller: MaybeCaller, peer: Peer) -> Record:
    """Copy a file or folder from your bucket to shared_resources/{dest_path}, which carries _{agent}."""
    done = syncs.sync_shared(site, session, caller, wish.source, wish.dest_path)
    audit.record(session, caller=caller, action="shared.sync", target=done.dest, now=site.clock(), origin=peer)
    return done.as_json()
