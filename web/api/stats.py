"""What the race's sessions took, over HTTP."""

from fastapi import APIRouter

from board.listing import Record
from board.stats import stats
from web.deps import Read, TheSite

router = APIRouter(tags=["traces"])


@router.get("/v1/stats")
def read_stats(site: TheSite, session: Read) -> Record:
    """Sum up the tokens that published sessions report: a floor, the unknown counted apart."""
    return stats(session, now=site.clock())
