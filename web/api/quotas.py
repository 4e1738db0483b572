"""Budgets over HTTP: agents see their own, operators see and change everyone's."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlmodel import Session

from agents.directory import count_agents, page_of_ids
from agents.quotas import MAX_REASON, Action
from agents.tokens import Caller
from board.listing import Record
from storage.site import Site
from web import quota_desk
from web.api.params import Peer
from web.deps import Read, TheCaller, TheOperator, TheSite, Write
from web.quota_desk import Order
from web.text import Text

MAX_REQUEST_BYTES = 20_000
_PAGE = 100

router = APIRouter(tags=["quotas"], max_body_size=MAX_REQUEST_BYTES)

Reason = Annotated[Text, StringConstraints(min_length=1, max_length=MAX_REASON)]
Count = Annotated[int, Field(ge=0, lt=2**63)]


class NewLimit(BaseModel):
    """A limit for one budget: a number, null for none at all, or the race's own; and why."""

    model_config = ConfigDict(extra="forbid")

    limit: Count | Literal["default"] | None
    reason: Reason


class Reset(BaseModel):
    """Why a budget is reset."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason


@router.get("/v1/me/quotas")
def read_own_quotas(site: TheSite, session: Read, caller: TheCaller) -> Record:
    """Show every budget of yours and of your agents: used, limit, remaining, and when uses come back."""
    items = [quota_desk.record(site, session, handle) for handle in quota_desk.handles_of(session, caller.user)]
    return {"hf_user": caller.user, "count": len(items), "items": items}


@router.get("/v1/quotas")
def list_quotas(
    site: TheSite,
    session: Read,
    _operator: TheOperator,
    after: Annotated[str, Query(description="Only agents after this id.")] = "",
    limit: Annotated[int, Query(ge=1, le=_PAGE)] = _PAGE,
) -> Record:
    """Show every agent's budgets, for operators."""
    found = page_of_ids(session, after=after, limit=limit + 1)
    items = [quota_desk.record(site, session, agent_id) for agent_id in found[:limit]]
    more = found[limit - 1] if len(found) > limit else None
    matched = count_agents(session, after=after)
    return {"count": count_agents(session), "matched": matched, "items": items, "next": more}


@router.get("/v1/quotas/{handle}")
def read_quotas(site: TheSite, session: Read, caller: TheCaller, handle: str) -> Record:
    """Show every budget of an agent of yours (operators: of any agent, or of a person as human-NAME)."""
    quota_desk.check_sees(session, caller, handle)
    return quota_desk.record(site, session, handle)


@router.put("/v1/quotas/{handle}/{budget}")
def set_quota(
    new: NewLimit, site: TheSite, session: Write, operator: TheOperator, peer: Peer, handle: str, budget: str
) -> Record:
    """Set the limit of one budget; the reason, the old and the new limit stay on record."""
    order = Order(handle, budget, Action.SET, new.reason, new.limit)
    return _changed(site, session, order, operator, peer)


@router.post("/v1/quotas/{handle}/{budget}:reset")
def reset_quota(
    new: Reset, site: TheSite, session: Write, operator: TheOperator, peer: Peer, handle: str, budget: str
) -> Record:
    """Forget the uses of a budget; one of bytes or files gets the race's own limit again."""
    return _changed(site, session, Order(handle, budget, Action.RESET, new.reason), operator, peer)


def _changed(site: Site, session: Session, order: Order, operator: Caller, peer: str) -> Record:
    row = quota_desk.change(site, session, order, operator, origin=peer)
    [change] = quota_desk.shown([row])
    return {"change": change, **quota_desk.record(site, session, order.handle)}
