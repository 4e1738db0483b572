"""The leaderboard over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query

from board import leaderboard
from board.leaderboard_query import read_query
from board.listing import Record
from web.deps import Read, TheSite

router = APIRouter(tags=["results"])


@router.get("/v1/leaderboard")
def read_leaderboard(
    site: TheSite,
    session: Read,
    best_per_agent: Annotated[str | None, Query(description="true (default): each agent's best row alone.")] = None,
    verification: Annotated[str | None, Query(description="States, comma separated; valid,pending by default.")] = None,
    agent: Annotated[str | None, Query(description="Only this agent's rows; they keep their rank.")] = None,
    limit: Annotated[str | None, Query(description="Most rows; all by default.")] = None,
    hardware: Annotated[str | None, Query(description="The board of other hardware than the challenge's.")] = None,
) -> Record:
    """Rank the results."""
    given = {"best_per_agent": best_per_agent, "verification": verification, "agent": agent, "limit": limit}
    query = read_query({**given, "hardware": hardware})
    return leaderboard.told(session, leaderboard.show(session, site.challenge, query, now=site.clock()))
