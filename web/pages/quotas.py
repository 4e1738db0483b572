"""`/quotas` and `/quotas/{handle}`: the desk where operators see and change budgets, and everybody sees their own."""

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session, select

from agents import quotas
from agents.directory import count_agents
from agents.quotas import MAX_REASON, Action
from agents.rows import AgentRow
from agents.tokens import Caller
from runner.quotas import budgets, owner_of
from storage import quota_meter
from storage.quota_rows import QuotaChangeRow
from storage.site import Site
from web import quota_desk
from web.deps import Read, TheSite, Write
from web.forms import FormOperator
from web.last_use import peer
from web.pages import figures
from web.pages.frame import page
from web.pages.meters import Meter, meters
from web.pages.moments import Moment, moment
from web.quota_desk import Order
from web.sessions import SignedIn, signed_in_operator

MAX_FORM_BYTES = 20_000
_SHOWN = 50

router = APIRouter(include_in_schema=False, max_body_size=MAX_FORM_BYTES)


@dataclass(frozen=True)
class HandleLine:
    """An agent, whose it is, and those of its budgets that are nearly spent."""

    handle: str
    user: str
    near: tuple[Meter, ...]


@dataclass(frozen=True)
class DeskView:
    """A page of those who have budgets, by name; `more` is the agent after whom the next page begins."""

    template: ClassVar[str] = "quotas.html"

    count: int
    lines: tuple[HandleLine, ...]
    is_first: bool
    more: str


@dataclass(frozen=True)
class ChangeLine:
    """What an operator did to a budget."""

    at: Moment
    by: str
    action: str
    budget: str
    before: str
    after: str
    reason: str


@dataclass(frozen=True)
class BucketLine:
    """What one bucket holds."""

    name: str
    size: str
    stored: str
    files: str


@dataclass(frozen=True)
class QuotaView:
    """The budgets of one agent or person."""

    template: ClassVar[str] = "quota.html"

    handle: str
    user: str
    meters: tuple[Meter, ...]
    buckets: tuple[BucketLine, ...]
    changes: tuple[ChangeLine, ...]
    can_change: bool


@router.get("/quotas", dependencies=[Depends(signed_in_operator)])
def desk(request: Request, site: TheSite, session: Read, after: Annotated[str, Query(max_length=100)] = "") -> Response:
    """Show budgets that are nearly spent, of a page of agents."""
    return page(request, desk_view(site, session, after=after))


@router.get("/quotas/{handle}")
def one(request: Request, site: TheSite, session: Read, caller: SignedIn, handle: str) -> Response:
    """Show the budgets of one agent or person, with forms for operators."""
    quota_desk.check_sees(session, caller, handle)
    return page(request, quota_view(site, session, handle, caller))


@router.post("/quotas/{handle}")
def change(
    request: Request,
    site: TheSite,
    session: Write,
    operator: FormOperator,
    handle: str,
    budget: Annotated[str, Form(max_length=64)],
    action: Annotated[Action, Form()],
    reason: Annotated[str, Form(max_length=MAX_REASON)] = "",
    limit: Annotated[str, Form(max_length=40)] = "default",
) -> Response:
    """Set or reset a budget and show the page again."""
    most = quota_desk.read_limit(limit) if action is Action.SET else None
    order = Order(handle, budget, action, reason, most)
    quota_desk.change(site, session, order, operator, origin=peer(request))
    return RedirectResponse(f"/quotas/{quote(handle)}", 303)


def desk_view(site: Site, session: Session, *, after: str = "") -> DeskView:
    """Read the budgets of the next agents after one, by name."""
    behind = select(AgentRow.agent_id, AgentRow.hf_user).where(AgentRow.agent_id > after)
    rows = session.exec(behind.order_by(AgentRow.agent_id).limit(_SHOWN + 1)).all()
    return DeskView(
        count=count_agents(session),
        lines=tuple(_line(site, session, handle, user) for handle, user in rows[:_SHOWN]),
        is_first=not after,
        more=rows[_SHOWN - 1][0] if len(rows) > _SHOWN else "",
    )


def quota_view(site: Site, session: Session, handle: str, caller: Caller) -> QuotaView:
    """Read the budgets of one handle as `caller` sees them."""
    owner, now = owner_of(session, handle), site.clock()
    trail = quotas.changes(session, quota_desk.subjects(handle, owner))
    return QuotaView(
        handle=handle,
        user=owner,
        meters=meters(budgets(session, site.challenge.limits, handle, now=now), now=now),
        buckets=tuple(
            BucketLine(name, figures.size(usage.size), figures.size(usage.stored), f"{usage.files:,}")
            for name, usage in quota_meter.by_bucket(session, owner).items()
        ),
        changes=tuple(_change(site, row) for row in trail),
        can_change=caller.is_operator,
    )


def _line(site: Site, session: Session, handle: str, user: str) -> HandleLine:
    standing = budgets(session, site.challenge.limits, handle, now=site.clock())
    return HandleLine(handle, user, tuple(each for each in meters(standing, now=site.clock()) if each.is_near))


def _change(site: Site, row: QuotaChangeRow) -> ChangeLine:
    before, after = quota_desk.figure(row.before), quota_desk.figure(row.after)
    at = moment(row.at, now=site.clock())
    return ChangeLine(at, row.actor, row.action, row.budget, before, after, row.reason)
