"""Results and their verification over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, StringConstraints

from agents import audit
from board import results, verification_status
from board.claims import Status
from board.leaderboard_query import read_states
from board.listing import Record, page
from board.messages import get_message, raw_files
from board.records import RESULTS
from runner.verification import open_for
from storage.errors import InvalidQuery
from web.api.params import Listing, Peer
from web.deps import MaybeCaller, Read, TheSite, Write

MAX_REQUEST_BYTES = 100_000

router = APIRouter(tags=["results"], max_body_size=MAX_REQUEST_BYTES)


class NewResult(BaseModel):
    """A result, by its source in the poster's bucket."""

    model_config = ConfigDict(extra="forbid")

    source: Annotated[str, StringConstraints(min_length=1, max_length=2000)]


@router.post("/v1/results", status_code=201)
def post_result(new: NewResult, site: TheSite, session: Write, caller: MaybeCaller, peer: Peer) -> Record:
    """Post a result from your bucket; this opens its verification."""
    posted = results.post(site, session, caller, new.source)
    audit.record(session, caller=caller, action="results.post", target=posted.path, now=site.clock(), origin=peer)
    open_for(site, session, posted.filename)
    return {"filename": posted.filename, "via": "bucket", "path": posted.path}


@router.get("/v1/results")
def list_results(
    query: Listing,
    site: TheSite,
    session: Read,
    status: Annotated[str | None, Query(description="agent-run or negative.")] = None,
    verification: Annotated[str | None, Query(description="States, comma separated: valid, pending, invalid.")] = None,
) -> Record:
    """List results."""
    states = read_states(verification) if verification else None
    folder = results.listing_of(status=_status(status) if status else None, states=states)
    found = page(session, folder, query, expand_limit=site.settings.expand_limit)
    records = {record["filename"]: record for record in results.to_records(session, found.rows)}
    return found.as_json(lambda row: records[row.filename])


@router.get("/v1/results/{filename}")
def read_result(filename: str, session: Read) -> Record:
    """Read one result."""
    return results.to_records(session, [get_message(session, filename, folder=RESULTS)])[0]


@router.get("/api/verification")
def dump_verification(session: Read) -> dict[str, str]:
    """Map every result's file name to its state; dashboards read this."""
    return verification_status.current(session)


@router.get("/api/results")
def dump_results(session: Read) -> Record:
    """List every result as the raw file; dashboards read this."""
    items = raw_files(session, folder=RESULTS)
    return {"items": items, "count": len(items)}


def _status(text: str) -> Status:
    if text not in tuple(Status):
        raise InvalidQuery(f"status must be one of {', '.join(Status)}, not {text!r:.40}.")
    return Status(text)
