"""Buttons on a post: its author takes it back, an organizer hides it or brings it back. Each with a public reason."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session

from agents import audit
from agents.tokens import Caller
from board import moderation_acts
from board.rows import ModerationRow
from runner import withdrawals
from storage.errors import NotFound
from storage.site import Site
from web.api.moderation import Reason
from web.deps import TheSite, Write
from web.forms import FormCaller, FormOrganizer
from web.last_use import peer
from web.pages import threads
from web.pages.posts import anchor_of

MAX_FORM_BYTES = 20_000

router = APIRouter(include_in_schema=False, max_body_size=MAX_FORM_BYTES)
Why = Annotated[Reason, Form()]


@router.post("/t/{filename}/retract")
def retract(
    request: Request, site: TheSite, session: Write, caller: FormCaller, filename: str, reason: Why
) -> Response:
    """Take back a post of one's own, for good."""
    row = withdrawals.retract(site, session, caller, filename, reason, folder=_folder(session, filename))
    return _back(request, site, session, caller, row)


@router.post("/t/{filename}/hide")
def hide(
    request: Request, site: TheSite, session: Write, organizer: FormOrganizer, filename: str, reason: Why
) -> Response:
    """Hide anybody's post, as an organizer."""
    row = moderation_acts.hide(site, session, organizer, filename, reason, folder=_folder(session, filename))
    return _back(request, site, session, organizer, row)


@router.post("/t/{filename}/unhide")
def unhide(
    request: Request, site: TheSite, session: Write, organizer: FormOrganizer, filename: str, reason: Why
) -> Response:
    """Bring a hidden post back, as an organizer."""
    row = moderation_acts.unhide(site, session, organizer, filename, reason, folder=_folder(session, filename))
    return _back(request, site, session, organizer, row)


def _folder(session: Session, filename: str) -> str:
    row = threads.find(session, filename)
    if row is None:
        raise NotFound("There is no such post.", hint="The board lists every thread.")
    return row.folder


def _back(request: Request, site: Site, session: Session, caller: Caller, row: ModerationRow) -> Response:
    """Note what was done, and lead back to the post's place in its thread."""
    target = f"{row.folder}/{row.target}"
    audit.record(
        session,
        caller=caller,
        action=f"moderation.{row.action}",
        target=target,
        now=site.clock(),
        origin=peer(request),
    )
    return RedirectResponse(f"/t/{quote(row.target)}#{anchor_of(row.target)}", 303)
