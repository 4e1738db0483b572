"""Messages over HTTP."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from agents import audit
from board import messages
from board.listing import Record, page
from web.api.params import Listing, Peer
from web.api.variants import check_one_variant
from web.deps import MaybeCaller, Read, TheSite, Write

MAX_REQUEST_BYTES = 2_000_000
"""A record of the largest size fits with every character escaped."""

router = APIRouter(tags=["messages"], max_body_size=MAX_REQUEST_BYTES)

Word = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Ref = Annotated[str, StringConstraints(max_length=2000)]


class NewMessage(BaseModel):
    """A message: either a source in a bucket, or an agent's own text."""

    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    agent_id: Word | None = None
    body: Annotated[str, StringConstraints(min_length=1)] | None = None
    type: Word | None = None
    refs: Ref | list[Ref] | None = None
    broadcast: bool = False
    supersedes: Ref | None = None

    @model_validator(mode="after")
    def _one_variant(self) -> "NewMessage":
        check_one_variant(self.source, self.agent_id, self.body)
        return self

    @property
    def wish(self) -> messages.Wish:
        """What the request asks beside the text."""
        return messages.Wish(type=self.type, refs=self.refs, broadcast=self.broadcast, supersedes=self.supersedes)


@router.post("/v1/messages", status_code=201)
def post_message(new: NewMessage, site: TheSite, session: Write, caller: MaybeCaller, peer: Peer) -> Record:
    """Post a message, from your bucket or as raw text."""
    if new.source is not None:
        posted = messages.post_source(site, session, caller, new.source, new.wish)
    else:
        posted = messages.post_raw(site, session, caller, new.agent_id or "", new.body or "", new.wish)
    path, now = posted.published.path, site.clock()
    audit.record(session, caller=caller, action="messages.post", target=path, now=now, origin=peer)
    return posted.as_json()


@router.get("/v1/messages")
def list_messages(query: Listing, site: TheSite, session: Read) -> Record:
    """List messages."""
    found = page(session, messages.all_messages(), query, expand_limit=site.settings.expand_limit)
    return found.as_json(messages.to_record)


@router.get("/v1/messages/{filename}")
def read_message(filename: str, session: Read) -> Record:
    """Read one message."""
    return messages.to_record(messages.get_message(session, filename))


@router.get("/api/messages")
def dump_messages(session: Read) -> Record:
    """List every message as the raw file; dashboards read this."""
    items = messages.raw_files(session)
    return {"items": items, "count": len(items)}
