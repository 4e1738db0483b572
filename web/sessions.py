"""Signed-in browsers: the cookie, and who is behind it.

Only pages take it. The JSON API takes bearer tokens alone, so that no other site can make a browser call it.
"""

from typing import Annotated

from fastapi import Depends, Request, Response
from starlette.background import BackgroundTask

from agents import sessions
from agents.roles import NotOperator
from agents.secrets import Kind, keyed_hash
from agents.sessions import Place, Started, Visit
from agents.tokens import Caller
from storage.database import reading
from storage.errors import Unauthorized
from storage.site import Site
from web.deps import TheSite
from web.last_use import mark_of, peer

COOKIE = "paddock_session"


class SignInNeeded(Unauthorized):
    """The page is for people who are signed in."""

    code = "SIGN_IN_NEEDED"


def find_visit(request: Request, site: Site) -> Visit | None:
    """Tell whose browser asks; None if nobody is signed in there."""
    cookie = request.cookies.get(COOKIE, "")
    if not cookie:
        return None
    with reading(site.engine) as session:
        return sessions.find_visit(session, cookie, secret=site.secret, now=site.clock())


def form_token(request: Request, site: Site) -> str:
    """The word that every form of this browser's session must send back."""
    return keyed_hash(site.secret, Kind.FORM, request.cookies.get(COOKIE, ""))


def place_of(request: Request) -> Place:
    """Where a request comes from, for the list of sessions."""
    return Place(peer(request), request.headers.get("user-agent", ""))


def hand_over(request: Request, response: Response, started: Started) -> None:
    """Give a new session's cookie to the browser; script never sees it, other sites' forms never send it."""
    response.set_cookie(
        COOKIE,
        started.cookie,
        max_age=int(sessions.LIFE.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )


def take_back(request: Request, response: Response) -> None:
    """Make the browser forget its cookie."""
    response.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=request.url.scheme == "https")


def note_visit(request: Request, site: Site, visit: Visit | None) -> BackgroundTask | None:
    """What notes the visit's time behind the answer, or None while the last note is fresh."""
    mark = visit and mark_of(site, visit.caller, visit.row.last_used_at, peer(request))
    return BackgroundTask(mark) if mark else None


def maybe_visit(request: Request, site: TheSite) -> Visit | None:
    """Whose browser asks, or None."""
    return find_visit(request, site)


MaybeVisit = Annotated[Visit | None, Depends(maybe_visit)]


def maybe_signed_in(visit: MaybeVisit) -> Caller | None:
    """Who is signed in, or None."""
    return visit.caller if visit else None


def the_visit(visit: MaybeVisit) -> Visit:
    """Whose browser asks.

    Raises:
        SignInNeeded: nobody is signed in; the browser is sent to the sign-in page.
    """
    if visit is None:
        raise SignInNeeded("Sign in to see this.", hint="Sign in at /signin.")
    return visit


TheVisit = Annotated[Visit, Depends(the_visit)]


def signed_in(visit: TheVisit) -> Caller:
    """Who is signed in; `SignInNeeded` as `the_visit`."""
    return visit.caller


MaybeSignedIn = Annotated[Caller | None, Depends(maybe_signed_in)]
SignedIn = Annotated[Caller, Depends(signed_in)]


def signed_in_operator(caller: SignedIn) -> Caller:
    """Who is signed in, if they are an operator.

    Raises:
        SignInNeeded, NotOperator: nobody, or somebody else.
    """
    if not caller.is_operator:
        raise NotOperator(
            "This page is for operators.", hint="An operator signs in with a link: paddock user link NAME."
        )
    return caller


SignedInOperator = Annotated[Caller, Depends(signed_in_operator)]
