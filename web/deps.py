"""What requests are given: the site, a session, the store, the caller."""

from collections.abc import Iterator
from typing import Annotated, cast

from fastapi import BackgroundTasks, Depends, Request
from sqlmodel import Session

from agents.roles import NotOperator, NotOrganizer
from agents.scopes import Scope, ScopeMissing
from agents.tokens import Caller, authenticate, last_used_at
from storage.database import reading, writing
from storage.errors import Unauthorized
from storage.site import Site
from web.last_use import mark_of, peer


async def get_site(request: Request) -> Site:
    """The site this application serves; async, because it need not wait for a thread."""
    return cast(Site, request.app.state.site)


def read_session(site: Annotated[Site, Depends(get_site)]) -> Iterator[Session]:
    """A session for reading."""
    with reading(site.engine) as session:
        yield session


def write_session(request: Request, site: Annotated[Site, Depends(get_site)]) -> Iterator[Session]:
    """A session that commits before the answer goes out (hence `scope="function"` below)."""
    with writing(site.engine) as session:
        request.state.spent = session.info  # `web.envelope` tells the caller what is left of it
        yield session


TheSite = Annotated[Site, Depends(get_site)]
Read = Annotated[Session, Depends(read_session)]
Write = Annotated[Session, Depends(write_session, scope="function")]


def bearer(request: Request) -> str | None:
    """The token of the Authorization header, or None."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def maybe_bearer(request: Request, site: TheSite, after: BackgroundTasks) -> Caller | None:
    """Who holds the token that came, whatever it is for; None without one.

    Raises:
        Unauthorized: a token came and is unknown, expired or revoked.
    """
    token = bearer(request)
    if token is None:
        return None
    with reading(site.engine) as session:
        caller = authenticate(session, token, secret=site.secret, now=site.clock())
        mark = mark_of(site, caller, last_used_at(session, caller), peer(request))
    if mark:
        after.add_task(mark)
    return caller


MaybeBearer = Annotated[Caller | None, Depends(maybe_bearer)]


def require(caller: Caller, scope: Scope) -> Caller:
    """Return the caller if their token is meant for such a call.

    Raises:
        ScopeMissing: it isn't.
    """
    if scope not in caller.scopes:
        hint = f"It has {', '.join(sorted(caller.scopes))}; make one with the scope at POST /v1/me/tokens."
        raise ScopeMissing(f"The token lacks the scope {scope.value!r}.", hint=hint)
    return caller


def _present(caller: Caller | None) -> Caller:
    if caller is None:
        raise Unauthorized("This call needs a token.", hint="Send it as 'Authorization: Bearer <token>'.")
    return caller


def maybe_caller(request: Request, caller: MaybeBearer) -> Caller | None:
    """Who calls, or None without a token; a token must have the scope `post` to write and `read` to read.

    Raises:
        Unauthorized, ScopeMissing: a token came and isn't good for this.
    """
    return caller and require(caller, Scope.READ if request.method in ("GET", "HEAD") else Scope.POST)


def maybe_reader(caller: MaybeBearer) -> Caller | None:
    """Who reads, or None without a token, whatever the method.

    Raises:
        Unauthorized, ScopeMissing: a token came and isn't good for this.
    """
    return caller and require(caller, Scope.READ)


def the_bearer(caller: MaybeBearer) -> Caller:
    """Who holds the token that came, whatever it is for.

    Raises:
        Unauthorized: none came.
    """
    return _present(caller)


def the_bucket_writer(caller: MaybeBearer) -> Caller:
    """Who calls, if their token may change buckets.

    Raises:
        Unauthorized, ScopeMissing: it may not.
    """
    return require(_present(caller), Scope.BUCKET)


def the_runner(caller: MaybeBearer) -> Caller:
    """Who calls, if their token may start and cancel benchmarks.

    Raises:
        Unauthorized, ScopeMissing: it may not.
    """
    return require(_present(caller), Scope.RUN)


MaybeCaller = Annotated[Caller | None, Depends(maybe_caller)]
MaybeReader = Annotated[Caller | None, Depends(maybe_reader)]
TheBearer = Annotated[Caller, Depends(the_bearer)]
TheBucketWriter = Annotated[Caller, Depends(the_bucket_writer)]
TheRunner = Annotated[Caller, Depends(the_runner)]


def the_caller(caller: MaybeCaller) -> Caller:
    """Who calls.

    Raises:
        Unauthorized, ScopeMissing: no token came, or one that isn't good for this.
    """
    return _present(caller)


TheCaller = Annotated[Caller, Depends(the_caller)]


def the_organizer(caller: TheCaller) -> Caller:
    """Who calls, if they are an organizer (or an operator).

    Raises:
        NotOrganizer: they are neither.
    """
    if not caller.is_organizer:
        raise NotOrganizer("Only an organizer can do this.", hint=f"You are {caller.handle}, a {caller.role}.")
    return caller


TheOrganizer = Annotated[Caller, Depends(the_organizer)]


def the_operator(caller: TheBearer) -> Caller:
    """Who calls, if they are an operator and their token is meant for it.

    Raises:
        Unauthorized: no token came.
        NotOperator: they aren't, or the token lacks the scope.
    """
    if not caller.is_operator:
        raise NotOperator("Only an operator can do this.", hint="The token needs the scope 'operate', too.")
    return caller


TheOperator = Annotated[Caller, Depends(the_operator)]


def origin(request: Request) -> str:
    """The scheme and host that the client itself used, for absolute URLs in answers; no slash at the end.

    `web.proxies` has put in what a trusted proxy says of them, and `web.hosts` let through only our own names.
    """
    return str(request.base_url).rstrip("/")


def site_url(request: Request, site: Site) -> str:
    """The address that generated texts use: the configured one, or the client's own; no slash at the end."""
    return site.settings.public_url.rstrip("/") or origin(request)
