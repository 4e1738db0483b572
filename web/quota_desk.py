"""Read and change budgets for the API, the pages and the command line: the same words, row and audit line for all."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, select

from agents import audit, quotas
from agents.quotas import Action, Budget
from agents.rows import AgentRow
from agents.tokens import Caller
from runner.quotas import budgets, find_kind, owner_of
from storage import quota_meter
from storage.clock import to_iso_ms
from storage.errors import Forbidden, Invalid
from storage.quota_limits import agent_subject, user_subject
from storage.quota_rows import QuotaChangeRow
from storage.site import Site


class QuotaNotYours(Forbidden):
    """Budgets are seen by their owner and by operators."""

    code = "QUOTA_NOT_YOURS"


_UNITS = {"kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_WORDS: dict[str, int | str | None] = {"none": None, "default": "default"}


class BadLimit(Invalid):
    """That is no limit."""

    code = "INVALID_REQUEST"


@dataclass(frozen=True)
class Order:
    """What an operator wants of one budget of a handle.

    `limit` is a number, None for no limit, or `default` for the race's own; a reset has none.
    """

    handle: str
    budget: str
    action: Action
    reason: str
    limit: int | str | None = None


def change(site: Site, session: Session, order: Order, by: Caller, *, origin: str = "") -> QuotaChangeRow:
    """Set or reset a budget, with its row in the trail and its line in the audit log.

    Raises:
        InvalidPath, NotRegistered, BudgetNotFound: there is no such budget.
        ReasonMissing: no reason came.
    """
    kind = find_kind(session, site.challenge.limits, order.handle, order.budget)
    now, said = site.clock(), {"actor": by.user, "reason": order.reason}
    if order.action is Action.RESET:
        row = quotas.reset(session, kind, now=now, **said)
    elif isinstance(order.limit, str):
        row = quotas.set_default(session, kind, now=now, **said)
    else:
        row = quotas.set_limit(session, kind, order.limit, now=now, **said)
    target = f"{row.subject} {row.budget}: {figure(row.before)} to {figure(row.after)}, because: {row.reason}"
    action = f"quotas.{order.action.value}"
    audit.record(session, caller=by, action=action, target=target, now=now, origin=origin)
    return row


def check_sees(session: Session, caller: Caller, handle: str) -> None:
    """Make sure that a caller may see the budgets of a handle.

    Raises:
        InvalidPath, NotRegistered: there is no such handle.
        QuotaNotYours: it is another's, and the caller no operator.
    """
    if owner_of(session, handle) != caller.user and not caller.is_operator:
        raise QuotaNotYours(f"Only its owner and operators see the budgets of {handle}.")


def handles_of(session: Session, user: str) -> list[str]:
    """List a person's own handle and their agents."""
    agents = session.exec(select(AgentRow.agent_id).where(AgentRow.hf_user == user).order_by(AgentRow.agent_id))
    return [f"human-{user}", *agents]


def record(site: Site, session: Session, handle: str) -> dict[str, Any]:
    """Describe all budgets of a handle, what its owner's buckets hold, and what operators changed."""
    owner = owner_of(session, handle)
    standing = budgets(session, site.challenge.limits, handle, now=site.clock())
    return {
        "handle": handle,
        "hf_user": owner,
        "budgets": [_budget(each) for each in standing],
        "buckets": [
            {"id": name, "bytes": usage.size, "stored_bytes": usage.stored, "files": usage.files}
            for name, usage in quota_meter.by_bucket(session, owner).items()
        ],
        "changes": shown(quotas.changes(session, subjects(handle, owner))),
    }


def subjects(handle: str, owner: str) -> list[str]:
    """Name both subjects whose budgets count for a handle."""
    return [agent_subject(handle), user_subject(owner)]


def shown(rows: Iterable[QuotaChangeRow]) -> list[dict[str, Any]]:
    """Describe changes of budgets."""
    return [
        {
            "at": to_iso_ms(row.at),
            "subject": row.subject,
            "budget": row.budget,
            "action": row.action,
            "by": row.actor,
            "reason": row.reason,
            "before": row.before,
            "after": row.after,
        }
        for row in rows
    ]


def read_limit(text: str) -> int | str | None:
    """Read a limit: digits with a unit or without, `none` or `default`.

    Raises:
        BadLimit: it is something else.
    """
    word = text.strip().lower().replace("_", "")
    if word in _WORDS:
        return _WORDS[word]
    unit = next((unit for unit in _UNITS if word.endswith(unit)), "")
    digits = word.removesuffix(unit).strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise BadLimit(f"{text!r:.40} is no limit.", hint="A whole number, as 5 or 200GB, or none, or default.")
    most = int(digits) * _UNITS.get(unit, 1)
    if not (most < 2**63):
        raise BadLimit(f"{text!r:.40} is more than can be counted.")
    return most


def figure(value: int | None) -> str:
    """Write a limit or a number of uses."""
    return "no limit" if value is None else str(value)


def _budget(standing: Budget) -> dict[str, Any]:
    kind = standing.kind
    return {
        "budget": kind.name,
        "subject": kind.subject,
        "used": standing.used,
        "limit": standing.limit,
        "default": kind.default,
        "remaining": standing.remaining,
        "window_s": kind.span.total_seconds() if kind.span else None,
        "resets_at": to_iso_ms(standing.resets_at) if standing.resets_at else None,
    }
