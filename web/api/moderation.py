"""Taking text away, bringing it back, and the public log of it, over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from sqlmodel import Session

from agents import audit
from agents.tokens import Caller
from board import moderation, moderation_acts, moderation_targets
from board.listing import Record, read_limit
from board.moderation_acts import ReadOnlyRecord
from board.records import MESSAGES, RESULTS, is_record
from board.rows import ModerationRow
from runner import withdrawals
from storage.paths import check_path
from storage.site import Site
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
Place = Annotated[Text, StringConstraints(min_length=1, max_length=2000)]
"""A path of the central bucket."""


class Why(BaseModel):
    """The reason, which stands in the public log."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason


class Target(Why):
    """What it is about, as a path of the central bucket, and why."""

    target: Place


def take_back(site: Site, session: Session, caller: Caller, target: str, reason: str) -> ModerationRow:
    """Retract the record at a path of the central bucket, with what hangs on it.

    Raises:
        InvalidPath, MessageNotFound, IdentityMismatch, AlreadyGone: as `runner.withdrawals.retract`.
        ReadOnlyRecord: it can't be taken back, or is no record.
    """
    folder, _, name = check_path(target).rpartition("/")
    if not is_record(target):
        raise ReadOnlyRecord("Only a record can be taken back.", hint="Put another file in the place of your own.")
    return withdrawals.retract(site, session, caller, name, reason, folder=folder)


@router.post("/v1/moderation:retract")
def retract_target(what: Target, site: TheSite, session: Write, caller: TheCaller, peer: Peer) -> Record:
    """Take back a message, a result or a taskforce's note of your own, for good."""
    row = take_back(site, session, caller, what.target, what.reason)
    return _told(site, session, caller, row, peer)


@router.post("/v1/moderation:hide")
def hide_target(what: Target, site: TheSite, session: Write, caller: TheOrganizer, peer: Peer) -> Record:
    """Hide a record, or any file that a client put: a taskforce's, an artifact, shared, a trace's, a registration."""
    row = moderation_targets.hide(site, session, caller, what.target, what.reason)
    return _told(site, session, caller, row, peer)


@router.post("/v1/moderation:unhide")
def unhide_target(what: Target, site: TheSite, session: Write, caller: TheOrganizer, peer: Peer) -> Record:
    """Bring back what was hidden, byte for byte, as an organizer."""
    row = moderation_targets.unhide(site, session, caller, what.target, what.reason)
    return _told(site, session, caller, row, peer)


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
