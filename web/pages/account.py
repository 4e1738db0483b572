"""Your account: the tokens and the browsers that act as you, each with its last use, and buttons that end it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session

from agents import audit, minting, sessions, tokens
from agents.rows import BrowserSessionRow, TokenRow
from agents.scopes import DEFAULT, Scope, read_scopes
from agents.sessions import Visit
from storage.site import Site
from web.deps import Read, TheSite, Write
from web.forms import FormVisit, form_caller
from web.last_use import peer
from web.pages.browsers import browser_name
from web.pages.frame import page
from web.pages.moments import Moment, moment
from web.sessions import TheVisit

MAX_FORM_BYTES = 20_000
_MOST_DAYS = 3660

router = APIRouter(include_in_schema=False, max_body_size=MAX_FORM_BYTES)
MayPost = Depends(form_caller)
"""Whoever signed in with a token that only reads changes nothing here."""


@dataclass(frozen=True)
class TokenItem:
    """One valid token; `is_here` if this browser signed in with it."""

    id: str
    label: str
    scopes: str
    made: Moment
    used: Moment | None
    origin: str
    ends: Moment | None
    is_here: bool


@dataclass(frozen=True)
class SessionItem:
    """One browser that is signed in."""

    id: str
    browser: str
    began: Moment
    used: Moment
    origin: str
    ends: Moment
    is_here: bool


@dataclass(frozen=True)
class ScopeChoice:
    """A scope that a new token may get."""

    name: str
    is_usual: bool


@dataclass(frozen=True)
class AccountView:
    """The page; `fresh` is the text of a token that was made a moment ago, shown this once."""

    template: ClassVar[str] = "account.html"

    user: str
    handle: str
    role: str
    tokens: list[TokenItem]
    sessions: list[SessionItem]
    choices: list[ScopeChoice]
    fresh: str


@router.get("/account")
def show(request: Request, site: TheSite, session: Read, visit: TheVisit) -> Response:
    """Show the account of whoever is signed in."""
    return page(request, _view(site, session, visit))


@router.post("/account/tokens", dependencies=[MayPost])
def make_token(
    request: Request,
    site: TheSite,
    session: Write,
    visit: FormVisit,
    label: Annotated[str, Form(max_length=100)] = "",
    scopes: Annotated[list[Scope] | None, Form()] = None,
    days: Annotated[int | None, Form(ge=1, le=_MOST_DAYS)] = None,
) -> Response:
    """Make a token and show it, this once."""
    now = site.clock()
    ends = now + timedelta(days=days) if days else None
    wish = minting.Wish(label.strip(), frozenset(scopes) if scopes else None, ends)
    made = minting.mint(session, visit.caller, wish, secret=site.secret, now=now)
    _note(request, site, session, visit, "tokens.make", made.row.id)
    return _shown_once(request, site, session, visit, made.text)


@router.post("/account/tokens/{token_id}/rotate", dependencies=[MayPost])
def rotate_token(request: Request, site: TheSite, session: Write, visit: FormVisit, token_id: str) -> Response:
    """Replace a token and show the new one, this once."""
    made = minting.rotate(session, visit.caller, token_id, secret=site.secret, now=site.clock())
    _note(request, site, session, visit, "tokens.rotate", token_id)
    return _shown_once(request, site, session, visit, made.text)


@router.post("/account/tokens/{token_id}/revoke", dependencies=[MayPost])
def revoke_token(request: Request, site: TheSite, session: Write, visit: FormVisit, token_id: str) -> Response:
    """Revoke a token at once."""
    tokens.end(session, tokens.get_own(session, visit.caller.user, token_id), now=site.clock())
    _note(request, site, session, visit, "tokens.revoke", token_id)
    return RedirectResponse("/account", 303)


@router.post("/account/sessions/{session_id}/end", dependencies=[MayPost])
def end_session(request: Request, site: TheSite, session: Write, visit: FormVisit, session_id: str) -> Response:
    """Sign one browser out."""
    sessions.end(session, visit.caller.user, session_id, now=site.clock())
    _note(request, site, session, visit, "sessions.end", session_id)
    return RedirectResponse("/account", 303)


def _shown_once(request: Request, site: Site, session: Session, visit: Visit, fresh: str) -> Response:
    answer = page(request, _view(site, session, visit, fresh))
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _note(request: Request, site: Site, session: Session, visit: Visit, action: str, target: str) -> None:
    audit.record(session, caller=visit.caller, action=action, target=target, now=site.clock(), origin=peer(request))


def _view(site: Site, session: Session, visit: Visit, fresh: str = "") -> AccountView:
    now, caller = site.clock(), visit.caller
    return AccountView(
        user=caller.user,
        handle=caller.handle,
        role=caller.role,
        tokens=[_token(row, visit, now) for row in tokens.tokens_of(session, caller.user, now=now)],
        sessions=[_session(row, visit, now) for row in sessions.sessions_of(session, caller.user, now=now)],
        choices=[ScopeChoice(scope, scope in DEFAULT) for scope in Scope if scope in caller.scopes],
        fresh=fresh,
    )


def _token(row: TokenRow, visit: Visit, now: datetime) -> TokenItem:
    return TokenItem(
        id=row.id,
        label=row.label,
        scopes=", ".join(sorted(read_scopes(row.scopes))),
        made=moment(row.created_at, now=now),
        used=moment(row.last_used_at, now=now) if row.last_used_at else None,
        origin=row.last_origin,
        ends=moment(row.expires_at, now=now) if row.expires_at else None,
        is_here=row.id == visit.row.token_id,
    )


def _session(row: BrowserSessionRow, visit: Visit, now: datetime) -> SessionItem:
    return SessionItem(
        id=row.id,
        browser=browser_name(row.browser),
        began=moment(row.created_at, now=now),
        used=moment(row.last_used_at, now=now),
        origin=row.last_origin,
        ends=moment(row.expires_at, now=now),
        is_here=row.id == visit.row.id,
    )
