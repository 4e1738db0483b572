"""Parameters that several endpoints share."""

from typing import Annotated

from fastapi import Depends, Query

from board.listing import ListQuery, read_query
from web.last_use import peer

_MOMENT = "ISO 8601 with any offset (none means UTC), or a compact stamp: 20261129[-120000[-000]]; inclusive."


def list_query(
    since: Annotated[str | None, Query(description=_MOMENT)] = None,
    until: Annotated[str | None, Query(description=_MOMENT)] = None,
    agent: Annotated[str | None, Query(description="Only records of this handle.")] = None,
    q: Annotated[str | None, Query(description="Text to find in frontmatter or body, in any case.")] = None,
    expand: Annotated[str | None, Query(description="Full records instead of file names.")] = None,
    limit: Annotated[str | None, Query(description="Records in a page; 10 by default, 0 or less for all.")] = None,
    order: Annotated[str | None, Query(description="desc (default) or asc.")] = None,
    after: Annotated[str | None, Query(description="Only records after this file name.")] = None,
    before: Annotated[str | None, Query(description="Only records before this file name.")] = None,
    type_: Annotated[str | None, Query(alias="type", description="Only records of this type.")] = None,
    via: Annotated[str | None, Query(description="Only records that came this way.")] = None,
) -> ListQuery:
    """Read the list grammar."""
    given = {"since": since, "until": until, "agent": agent, "q": q, "expand": expand, "limit": limit}
    return read_query({**given, "order": order, "after": after, "before": before, "type": type_, "via": via})


Listing = Annotated[ListQuery, Depends(list_query)]
Peer = Annotated[str, Depends(peer)]
