"""Taking text away, bringing it back, and the public log of it, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

from agents import audit
from agents.tokens import Caller
from board import moderation, moderation_acts
from board.listing import Record, read_limit
from board.records import MESSAGES, RESULTS
from board.rows import ModerationRow
from runner import withdrawals
from web.api.params import Peer
from web.deps import Read, TheCaller, TheOrganizer, TheSite, Write
from web.text import Text

router = APIRouter(tags=["moderation"], max_body_size=100_000)


def _said(text: str) -> str:
    """Refuse what says nothing once its edges are cut, and what can't be stored."""
    if not text:
        raise ValueError("it is empty")
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    return text


Reason = Annotated[Text, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(_said)]


class Why(BaseModel):
    """The reason, which stands in the public log."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason


@router.post("/v1/messages/{filename}:retract")
def retract_message(filename: str, why: Why, site: TheSite, session: Write, caller: TheCaller, peer: Peer) -> Record:
    """Take back a message of your own, for good; a tombstone stays and so do its replies."""
    row = withdrawals.retract(site, session, caller, filename, why.reason, folder=MESSAGES)
    return _told(site, session, caller, row, peer)


@router.post("/v1/results/{filename}:retract")
def retract_result(filename: str, why: Why, site: TheSite, session: Write, caller: TheCaller, peer: Peer) -> Record:
    """Take back a result of your own, for good; it leaves the ranking, and is not measured unless that has begun."""
    row = withdrawals.retract(site, session, caller, filename, why.reason, folder=RESULTS)
    return _told(site, session, caller, row, peer)


@router.post("/v1/messages/{filename}:hide")
def hide_message(filename: str, why: Why, site: TheSite, session: Write, caller: TheOrganizer, peer: Peer) -> Record:
    """Hide a message, as an organizer."""
    row = moderation_acts.hide(site, session, caller, filename, why.reason, folder=MESSAGES)
    return _told(site, session, caller, row, peer)


@router.post("/v1/results/{filename}:hide")
def hide_result(filename: str, why: Why, site: TheSite, session: Write, caller: TheOrganizer, peer: Peer) -> Record:
    """Hide a result, as an organizer; it leaves the ranking."""
    row = moderation_acts.hide(site, session, caller, filename, why.reason, folder=RESULTS)
    return _told(site, session, caller, row, peer)


@router.post("/v1/messages/{filename}:unhide")
def unhide_message(filename: str, why: Why, site: TheSite, session: Write, caller: TheOrganizer, peer: Peer) -> Record:
    """Bring a hidden message back, as an organizer."""
    row = moderation_acts.unhide(site, session, caller, filename, why.reason, folder=MESSAGES)
    return _told(site, session, caller, row, peer)


@router.post("/v1/results/{filename}:unhide")
def unhide_result(filename: str, why: Why, site: TheSite, session: Write, caller: TheOrganizer, peer: Peer) -> Record:
    """Bring a hidden result back, as an organizer."""
    row = moderation_acts.unhide(site, session, caller, filename, why.reason, folder=RESULTS)
    return _told(site, session, caller, row, peer)


@router.get("/v1/moderation")
def list_moderation(
    session: Read,
    limit: Annotated[str | None, Query(description="Entries in a page, at most 100.")] = None,
    before: Annotated[str | None, Query(description="Only entries before this file name.", max_length=200)] = None,
) -> Record:
    """List what was taken away or brought back, newest first: who, what, when and why."""
    asked = read_limit(limit or None, default=moderation.MAX_PAGE)
    size = min(asked, moderation.MAX_PAGE) if asked > 0 else moderation.MAX_PAGE
    found = moderation.log(session, limit=size, before=before or None)
    return {"count": found.count, "items": [moderation.as_json(row) for row in found.rows], "next": found.next}


def _told(site: TheSite, session: Write, caller: Caller, row: ModerationRow, peer: str) -> Record:
    action, target = f"moderation.{row.action}", f"{row.folder}/{row.target}"
    audit.record(session, caller=caller, action=action, target=target, now=site.clock(), origin=peer)
    return moderation.as_json(row)
