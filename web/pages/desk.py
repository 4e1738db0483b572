"""`/desk`: an operator's way to quotas, audit and moderation; people, their roles and their sign-in links."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session

from agents import accounts, audit, links
from agents.roles import Role
from agents.rows import UserRow
from agents.tokens import Caller
from storage.errors import Forbidden
from storage.site import Site
from web.deps import Read, TheSite, Write, site_url
from web.forms import FormOperator
from web.last_use import peer
from web.pages import moments
from web.pages.frame import page
from web.pages.moments import Moment
from web.sessions import SignedInOperator

MAX_FORM_BYTES = 20_000
_SHOWN = 50

router = APIRouter(include_in_schema=False, max_body_size=MAX_FORM_BYTES)


class OwnRole(Forbidden):
    """Who took the role of operator from themselves could not give it back."""

    code = "OWN_ROLE"


@dataclass(frozen=True)
class PersonLine:
    """One account."""

    user: str
    role: str
    since: Moment
    is_you: bool


@dataclass(frozen=True)
class DeskPageView:
    """The desk; `link` is a sign-in link that was made a moment ago for `linked`, shown this once."""

    template: ClassVar[str] = "desk.html"

    count: int
    people: tuple[PersonLine, ...]
    is_first: bool
    more: str
    roles: tuple[str, ...]
    linked: str
    link: str
    link_minutes: int


@router.get("/desk")
def desk(
    request: Request,
    site: TheSite,
    session: Read,
    operator: SignedInOperator,
    after: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Show the desk."""
    return page(request, desk_view(site, session, operator, after=after))


@router.post("/desk/people")
def add_person(
    request: Request, site: TheSite, session: Write, operator: FormOperator, user: Annotated[str, Form(max_length=100)]
) -> Response:
    """Make an account, and a link that signs its person in; for an existing account, one more link."""
    name = accounts.add(session, user.strip(), now=site.clock()).name
    _note(request, site, session, operator, "users.add", name)
    return _linked(request, site, session, operator, name)


@router.post("/desk/people/{user}/link")
def make_link(request: Request, site: TheSite, session: Write, operator: FormOperator, user: str) -> Response:
    """Make a link that signs somebody in, and show it, this once."""
    return _linked(request, site, session, operator, user)


@router.post("/desk/people/{user}/role")
def set_role(
    request: Request,
    site: TheSite,
    session: Write,
    operator: FormOperator,
    user: str,
    role: Annotated[Role, Form()],
) -> Response:
    """Give somebody else another role.

    Raises:
        OwnRole, UserNotFound: nothing changed.
    """
    if user == operator.user:
        raise OwnRole("You can't change your own role.", hint="Another operator can, or: paddock user role.")
    accounts.set_role(session, user, role)
    _note(request, site, session, operator, "users.role", f"{user} {role}")
    return RedirectResponse("/desk", 303)


def desk_view(
    site: Site, session: Session, operator: Caller, *, after: str = "", linked: str = "", link: str = ""
) -> DeskPageView:
    """Read the next accounts after a name."""
    rows = accounts.page_of(session, after=after, limit=_SHOWN + 1)
    return DeskPageView(
        count=accounts.count(session),
        people=tuple(_person(site, row, operator) for row in rows[:_SHOWN]),
        is_first=not after,
        more=rows[_SHOWN - 1].name if len(rows) > _SHOWN else "",
        roles=tuple(Role),
        linked=linked,
        link=link,
        link_minutes=round(links.LIFE.total_seconds() / 60),
    )


def _linked(request: Request, site: Site, session: Session, operator: Caller, user: str) -> Response:
    path = links.make(session, user, secret=site.secret, now=site.clock())
    _note(request, site, session, operator, "links.make", user)
    view = desk_view(site, session, operator, linked=user, link=f"{site_url(request, site)}{path}")
    answer = page(request, view)
    answer.headers["Cache-Control"] = "no-store"
    return answer


def _person(site: Site, row: UserRow, operator: Caller) -> PersonLine:
    since = moments.moment(row.created_at, now=site.clock())
    return PersonLine(row.name, row.role, since, is_you=row.name == operator.user)


def _note(request: Request, site: Site, session: Session, caller: Caller, action: str, target: str) -> None:
    audit.record(session, caller=caller, action=action, target=target, now=site.clock(), origin=peer(request))
