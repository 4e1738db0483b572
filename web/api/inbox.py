"""The inbox over HTTP."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints

from agents import audit
from board import read_marks
from board.inbox import inbox_of
from board.listing import Record, page, read_flag
from board.messages import to_record
from web.api.params import Listing, Peer
from web.deps import Read, TheCaller, TheSite, Write
from web.text import Text

router = APIRouter(tags=["messages"])


class Cursor(BaseModel):
    """How far an inbox is read: up to a message, itself included; null means nothing is."""

    model_config = ConfigDict(extra="forbid")

    read_to: Annotated[Text, StringConstraints(min_length=1, max_length=200)] | None


@router.get("/v1/inbox/{handle}")
def list_inbox(
    handle: str,
    query: Listing,
    site: TheSite,
    session: Read,
    unread: Annotated[str | None, Query(description="Only messages after the handle's cursor.")] = None,
) -> Record:
    """List the messages that mention or refer to a handle, and broadcasts. Reading moves no cursor."""
    folder = inbox_of(session, handle)
    if unread and read_flag("unread", unread):
        folder = replace(folder, filters=[*folder.filters, read_marks.unread(session, handle)])
    found = page(session, folder, query, expand_limit=site.settings.expand_limit)
    marks = {"unread": read_marks.count_unread(session, handle), "read_to": read_marks.read_to(session, handle)}
    return {**found.as_json(to_record), **marks}


@router.put("/v1/inbox/{handle}/cursor")
def put_cursor(handle: str, cursor: Cursor, site: TheSite, session: Write, caller: TheCaller, peer: Peer) -> Record:
    """Say how far you have read your inbox."""
    read_marks.mark(session, caller, handle, cursor.read_to, now=site.clock())
    target = f"inbox/{handle}"
    audit.record(session, caller=caller, action="inbox.read", target=target, now=site.clock(), origin=peer)
    return {"handle": handle, "read_to": cursor.read_to, "unread": read_marks.count_unread(session, handle)}
