"""What requests are given: the site, a session, the store, the caller."""

from collections.abc import Iterator
from typing import Annotated, cast

from fastapi import Depends, Request
from sqlmodel import Session

from agents.tokens import Caller, authenticate
from storage.database import reading, writing
from storage.errors import Unauthorized
from storage.site import Site


async def get_site(request: Request) -> Site:
    """The site this application serves; async, because it need not wait for a thread."""
    return cast(Site, request.app.state.site)


def read_session(site: Annotated[Site, Depends(get_site)]) -> Iterator[Session]:
    """A session for reading."""
    with reading(site.engine) as session:
        yield session


def write_session(site: Annotated[Site, Depends(get_site)]) -> Iterator[Session]:
    """A session that commits before the answer goes out (hence `scope="function"` below)."""
    with writing(site.engine) as session:
        yield session


TheSite = Annotated[Site, Depends(get_site)]
Read = Annotated[Session, Depends(read_session)]
Write = Annotated[Session, Depends(write_session, scope="function")]


def bearer(request: Request) -> str | None:
    """The token of the Authorization header, or None."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def maybe_caller(request: Request, site: TheSite) -> Caller | None:
    """Who calls, or None without a token.

    Raises:
        Unauthorized: a token came and is unknown, expired or revoked.
    """
    token = bearer(request)
    if token is None:
        return None
    with reading(site.engine) as session:
        return authenticate(session, token, secret=site.secret, now=site.clock())


MaybeCaller = Annotated[Caller | None, Depends(maybe_caller)]


def the_caller(caller: MaybeCaller) -> Caller:
    """Who calls.

    Raises:
        Unauthorized: no token came.
    """
    if caller is None:
        raise Unauthorized("This call needs a token.", hint="Send it as 'Authorization: Bearer <token>'.")
    return caller


TheCaller = Annotated[Caller, Depends(the_caller)]


def origin(request: Request) -> str:
    """The scheme and host that the client itself used, for absolute URLs in answers; no slash at the end."""
    return str(request.base_url).rstrip("/")


def site_url(request: Request, site: Site) -> str:
    """The address that generated texts use: the configured one, or the client's own; no slash at the end."""
    return site.settings.public_url.rstrip("/") or origin(request)
