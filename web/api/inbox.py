"""The inbox over HTTP."""

from fastapi import APIRouter

from board.inbox import inbox_of
from board.listing import Record, page
from board.messages import to_record
from web.api.params import Listing
from web.deps import Read, TheSite

router = APIRouter(tags=["messages"])


@router.get("/v1/inbox/{handle}")
def list_inbox(handle: str, query: Listing, site: TheSite, session: Read) -> Record:
    """List the messages that mention or refer to a handle, and broadcasts."""
    found = page(session, inbox_of(session, handle), query, expand_limit=site.settings.expand_limit)
    return found.as_json(to_record)
