"""Signing in: with a token, or with a link that an operator made. Another way (OAuth) would end in `_enter`, too."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session

from agents import audit, links, sessions, tokens
from agents.scopes import ALL
from agents.tokens import Caller
from storage.site import Site
from web.deps import Read, TheSite, Write
from web.forms import FormVisit, SameOrigin
from web.last_use import peer
from web.pages.frame import page
from web.sessions import MaybeVisit, find_visit, hand_over, place_of, take_back

MAX_FORM_BYTES = 20_000
_HOME = "/account"

router = APIRouter(include_in_schema=False, max_body_size=MAX_FORM_BYTES)


@dataclass(frozen=True)
class SignInView:
    """The form for a token; `problem` says what was wrong with the last try."""

    template: ClassVar[str] = "signin.html"

    back: str
    problem: str


@dataclass(frozen=True)
class LinkView:
    """The button behind a link; `user` is empty where the link opens nothing any more."""

    template: ClassVar[str] = "signin_link.html"

    user: str
    action: str


@router.get("/signin")
def ask(request: Request, visit: MaybeVisit, next: str = "") -> Response:  # noqa: A002 - the parameter's usual name
    """Ask for a token, unless the browser is signed in."""
    return RedirectResponse(_local(next), 303) if visit else page(request, SignInView(_local(next), ""))


@router.post("/signin", dependencies=[SameOrigin])
def sign_in(
    request: Request,
    site: TheSite,
    session: Write,
    token: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "",  # noqa: A002
) -> Response:
    """Sign in with a token; the session may do what the token may, and lives no longer than it."""
    caller = tokens.find_caller(session, token.strip(), secret=site.secret, now=site.clock())
    if caller is None or not caller.scopes:  # a session without a scope opens nothing
        return page(request, SignInView(_local(next), "That is no valid token."), status=401)
    return _enter(request, site, session, caller.user, back=_local(next), token=caller)


@router.get("/signin/link/{secret}")
def open_link(request: Request, site: TheSite, session: Read, secret: str) -> Response:
    """Show whom a link signs in; only the button uses it up, so that a preview of the link doesn't."""
    user = links.find_user(session, secret, secret=site.secret, now=site.clock())
    return page(request, LinkView(user or "", f"{links.PATH}/{secret}"), status=200 if user else 404)


@router.post("/signin/link/{secret}", dependencies=[SameOrigin])
def use_link(request: Request, site: TheSite, session: Write, secret: str) -> Response:
    """Sign in with a link, once."""
    user = links.use(session, secret, secret=site.secret, now=site.clock())
    return _enter(request, site, session, user, back=_HOME)


@router.post("/signout")
def sign_out(request: Request, site: TheSite, session: Write, visit: FormVisit) -> Response:
    """End this browser's session."""
    sessions.end(session, visit.caller.user, visit.row.id, now=site.clock())
    _note(request, site, session, visit.caller, "sessions.end", visit.row.id)
    return _leave(request)


@router.post("/signout/everywhere")
def sign_out_everywhere(request: Request, site: TheSite, session: Write, visit: FormVisit) -> Response:
    """End every session of this person, and every link that would begin one."""
    sessions.end_all(session, visit.caller.user, now=site.clock())
    _note(request, site, session, visit.caller, "sessions.end_all", visit.caller.user)
    return _leave(request)


def _enter(
    request: Request, site: Site, session: Session, user: str, *, back: str, token: Caller | None = None
) -> Response:
    """Start a session for `user`, in the place of the one that this browser has."""
    now, scopes = site.clock(), token.scopes if token else ALL
    old = find_visit(request, site)
    if old is not None:
        sessions.end(session, old.caller.user, old.row.id, now=now)
    if token:
        tokens.mark_used(session, token.token_id, now=now, origin=peer(request))
    started = sessions.start(
        session,
        user,
        secret=site.secret,
        now=now,
        place=place_of(request),
        scopes=scopes,
        token_id=token.token_id if token else None,
    )
    entered = token or sessions.caller_of(session, started.row)
    _note(request, site, session, entered, "sessions.start", started.row.id)
    answer = RedirectResponse(back, 303)
    hand_over(request, answer, started)
    return answer


def _leave(request: Request) -> Response:
    answer = RedirectResponse("/", 303)
    take_back(request, answer)
    return answer


def _note(request: Request, site: Site, session: Session, caller: Caller, action: str, target: str) -> None:
    audit.record(session, caller=caller, action=action, target=target, now=site.clock(), origin=peer(request))


def _local(path: str) -> str:
    """A path of this site to go on to; anything that could lead elsewhere becomes the account's page."""
    is_ours = path.startswith("/") and not path.startswith(("//", "/\\", "/signin")) and path.isprintable()
    return path if is_ours else _HOME
