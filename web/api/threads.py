"""Threads over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query

from board import threads
from board.listing import Record, read_limit
from web.deps import Read

router = APIRouter(tags=["messages"])


@router.get("/v1/threads/{filename}")
def read_thread(
    filename: str,
    session: Read,
    limit: Annotated[str | None, Query(description="Records in a page, at most 100.")] = None,
    after: Annotated[str | None, Query(description="Only records after this file name.", max_length=200)] = None,
) -> Record:
    """Read the thread that a record belongs to: its root, then every reply in order, each with its state."""
    asked = read_limit(limit or None, default=threads.MAX_PAGE)
    size = min(asked, threads.MAX_PAGE) if asked > 0 else threads.MAX_PAGE
    return threads.as_json(session, threads.read(session, filename, limit=size, after=after or ""))
