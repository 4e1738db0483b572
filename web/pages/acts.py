"""Buttons on a post or a file: its author takes it back, an organizer hides it or brings it back, each with a reason.

What it is about is a path of the central bucket, as in the public log.
"""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session

from agents import audit
from agents.tokens import Caller
from board import moderation_targets
from board.rows import ModerationRow
from storage.site import Site
from web.api.moderation import Place, Reason, take_back
from web.deps import TheSite, Write
from web.forms import FormCaller, FormOrganizer
from web.last_use import peer
from web.pages import places

MAX_FORM_BYTES = 20_000

router = APIRouter(prefix="/moderation", include_in_schema=False, max_body_size=MAX_FORM_BYTES)
Why = Annotated[Reason, Form()]
What = Annotated[Place, Form()]


@router.post("/retract")
def retract(request: Request, site: TheSite, session: Write, caller: FormCaller, target: What, reason: Why) -> Response:
    """Take back a record of one's own, for good."""
    return _back(request, site, session, caller, take_back(site, session, caller, target, reason))


@router.post("/hide")
def hide(
    request: Request, site: TheSite, session: Write, organizer: FormOrganizer, target: What, reason: Why
) -> Response:
    """Hide what anybody put there, as an organizer."""
    row = moderation_targets.hide(site, session, organizer, target, reason)
    return _back(request, site, session, organizer, row)


@router.post("/unhide")
def unhide(
    request: Request, site: TheSite, session: Write, organizer: FormOrganizer, target: What, reason: Why
) -> Response:
    """Bring back what was hidden, as an organizer."""
    row = moderation_targets.unhide(site, session, organizer, target, reason)
    return _back(request, site, session, organizer, row)


def _back(request: Request, site: Site, session: Session, caller: Caller, row: ModerationRow) -> Response:
    """Note what was done, and lead back to the place where it shows."""
    target, action, now = f"{row.folder}/{row.target}", f"moderation.{row.action}", site.clock()
    audit.record(session, caller=caller, action=action, target=target, now=now, origin=peer(request))
    return RedirectResponse(places.of_path(site.central, target), 303)
