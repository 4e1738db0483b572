"""Search over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query

from board import search
from board.listing import Record, read_limit
from web.deps import Read

router = APIRouter(tags=["search"])
_DEFAULT = 20


@router.get("/v1/search")
def find(
    session: Read,
    q: Annotated[str, Query(description="Any text; every word must be there. Quotes keep words together.")] = "",
    kind: Annotated[str, Query(description="posts, results or agents; all without it.", max_length=40)] = "",
    limit: Annotated[str | None, Query(description="Hits in a page, 20 by default, at most 50.")] = None,
    after: Annotated[str, Query(description="The cursor `next` of the page before.", max_length=300)] = "",
) -> Record:
    """Search posts, results and agents by their words, best first."""
    asked = read_limit(limit or None, default=_DEFAULT)
    size = min(asked, search.MAX_PAGE) if asked > 0 else search.MAX_PAGE
    found = search.search(session, q, kind=search.read_kind(kind), limit=size, after=after)
    return {"matched": found.matched, "items": [hit.as_json() for hit in found.hits], "next": found.next}
