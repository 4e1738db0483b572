"""Taskforces over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from agents import audit
from board import taskforces, taskforces_adding, taskforces_listing
from board.listing import Record, page, read_limit
from board.messages import to_record
from web.api.params import Listing, Peer
from web.api.raw_files import RAW, raw_file
from web.api.variants import check_one_variant
from web.deps import MaybeCaller, Read, TheSite, Write

MAX_REQUEST_BYTES = 2_000_000
"""A record of the largest size fits with every character escaped."""

router = APIRouter(tags=["taskforces"], max_body_size=MAX_REQUEST_BYTES)

_UPDATED = {"description": "Its creator updated it.", "content": {"application/json": {"schema": {"type": "object"}}}}

Word = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Place = Annotated[str, StringConstraints(min_length=1, max_length=2000)]
Body = Annotated[str, StringConstraints(min_length=1)]


class NewTaskforce(BaseModel):
    """A taskforce's name, and its README: a source in a bucket, or an agent's own text."""

    model_config = ConfigDict(extra="forbid")

    name: Word
    source: Place | None = None
    agent_id: Word | None = None
    body: Body | None = None

    @model_validator(mode="after")
    def _one_variant(self) -> "NewTaskforce":
        check_one_variant(self.source, self.agent_id, self.body)
        return self


class NewFile(BaseModel):
    """A note, as a source or as an agent's own text, or, with `dest_path`, a source under a name of its own."""

    model_config = ConfigDict(extra="forbid")

    source: Place | None = None
    dest_path: Place | None = None
    agent_id: Word | None = None
    body: Body | None = None
    type: Word | None = None

    @model_validator(mode="after")
    def _one_variant(self) -> "NewFile":
        check_one_variant(self.source, self.agent_id, self.body)
        if self.dest_path is not None and self.source is None:
            raise ValueError("dest_path names where a source goes; send it with source")
        if self.type is not None and self.source is not None:
            raise ValueError("type goes with a raw note; a source says its type in its frontmatter")
        return self


@router.post("/v1/taskforces", status_code=201, responses={200: _UPDATED})
def open_taskforce(
    new: NewTaskforce, site: TheSite, session: Write, caller: MaybeCaller, peer: Peer, response: Response
) -> Record:
    """Open a taskforce, or rewrite the README of your own."""
    if new.source is not None:
        opened = taskforces.open_from_source(site, session, caller, new.name, new.source)
    else:
        opened = taskforces.open_raw(site, session, caller, new.name, new.agent_id or "", new.body or "")
    action = "taskforces.open" if opened.created else "taskforces.update"
    audit.record(session, caller=caller, action=action, target=opened.path, now=site.clock(), origin=peer)
    response.status_code = 201 if opened.created else 200
    return {"name": opened.name, "via": opened.via, "path": opened.path, "created": opened.created}


@router.get("/v1/taskforces")
def list_taskforces(
    session: Read,
    q: Annotated[str, Query(description="Text to find in a taskforce's name or README, in any case.")] = "",
    limit: Annotated[str | None, Query(description="Most items; all by default.")] = None,
) -> Record:
    """List taskforces, newest activity first."""
    found = taskforces_listing.find_taskforces(session, q=q, limit=read_limit(limit or None, default=0))
    return {"count": found.count, "matched": found.matched, "items": found.items}


@router.get("/v1/taskforces/{name}")
def read_taskforce(name: str, session: Read) -> Record:
    """Read one taskforce: its README, its people, its latest notes."""
    return taskforces_listing.describe(session, name)


@router.post("/v1/taskforces/{name}/files", status_code=201)
def add_to_taskforce(name: str, new: NewFile, site: TheSite, session: Write, caller: MaybeCaller, peer: Peer) -> Record:
    """Add a note to a taskforce, or with dest_path a named file."""
    if new.source is not None and new.dest_path is not None:
        added = taskforces_adding.add_file(site, session, caller, name, new.source, new.dest_path)
    elif new.source is not None:
        added = taskforces_adding.add_note_from_source(site, session, caller, name, new.source)
    else:
        handle, body = new.agent_id or "", new.body or ""
        added = taskforces_adding.add_note_raw(site, session, caller, name, handle, body, kind=new.type)
    audit.record(
        session, caller=caller, action=f"taskforces.{added.kind}", target=added.path, now=site.clock(), origin=peer
    )
    return {"kind": added.kind, "filename": added.filename, "via": added.via, "path": added.path}


@router.get("/v1/taskforces/{name}/notes")
def list_notes(name: str, query: Listing, site: TheSite, session: Read) -> Record:
    """List a taskforce's notes."""
    found = page(session, taskforces_listing.notes_of(session, name), query, expand_limit=site.settings.expand_limit)
    return found.as_json(to_record)


@router.get("/v1/taskforces/{name}/files")
def list_files(name: str, session: Read) -> Record:
    """List a taskforce's named files; sizes are in bytes."""
    items = taskforces_listing.files_of(session, name)
    return {"count": len(items), "items": items}


@router.get("/v1/taskforces/{name}/files/{path:path}", response_class=Response, responses=RAW)
def read_file(name: str, path: str, site: TheSite, session: Read) -> Response:
    """Read the raw bytes of a file of a taskforce: its README, a note or a named file."""
    return raw_file(site, session, taskforces_listing.find_file(site, session, name, path))
