"""The digest over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query

from board.digest import digest
from board.listing import Record, read_query
from web.deps import Read, TheSite

router = APIRouter(tags=["messages"])


@router.get("/v1/digest")
def read_digest(
    site: TheSite,
    session: Read,
    as_: Annotated[str | None, Query(alias="as", description="The handle whose inbox is added.")] = None,
    since: Annotated[str | None, Query(description="Only messages and results since; as in the listings.")] = None,
) -> Record:
    """Tell where the race stands, in one read."""
    return digest(site, session, reader=as_, since=read_query({"since": since}).since)
