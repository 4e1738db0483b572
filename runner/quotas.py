"""Benchmark runs per agent and per person in any 24 hours, volleys per person; what failed through us is given back.

Here all budgets of an agent come together, because this is the lowest place that knows them all.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, delete, or_

from agents import quotas
from agents.limits import take
from agents.names import user_of
from agents.ownership import get_agent
from agents.quotas import DAY, Budget, Kind
from agents.rows import SpentRow
from storage.challenge import Limits
from storage.errors import NotFound
from storage.quota_limits import agent_subject, user_subject

_AGENT, _USER, _VOLLEYS = "runs_per_agent_per_day", "runs_per_user_per_day", "verifications_per_user_per_day"


class BudgetNotFound(NotFound):
    """There is no budget of that name, or not for such a subject."""

    code = "BUDGET_NOT_FOUND"


@dataclass(frozen=True)
class Quota:
    """Runs left in the last 24 hours; None is no limit."""

    agent_remaining: int | None
    user_remaining: int | None


def spend_run(session: Session, limits: Limits, *, agent_id: str, user: str, job_id: str, now: datetime) -> None:
    """Take one run from both budgets, or from neither.

    Raises:
        RateLimited: one of them is spent.
    """
    kinds = [_agent_runs(limits, agent_id), _user_runs(limits, user)]
    take(session, quotas.windows(session, kinds), now, ref=job_id)


def spend_verification(session: Session, limits: Limits, *, user: str, ref: str, now: datetime) -> None:
    """Take one volley from a person's budget.

    Raises:
        RateLimited: it is spent.
    """
    take(session, [_volleys(limits, user).window(session)], now, ref=ref)


def refund_run(session: Session, job_id: str) -> None:
    """Give back what a job took; again gives nothing."""
    of_runs = or_(col(SpentRow.budget).startswith(f"{_AGENT}:"), col(SpentRow.budget).startswith(f"{_USER}:"))
    session.exec(delete(SpentRow).where(col(SpentRow.ref) == job_id, of_runs))


def left(session: Session, limits: Limits, *, agent_id: str, user: str, now: datetime) -> Quota:
    """Count the runs that are left."""
    return Quota(
        agent_remaining=quotas.measure(session, _agent_runs(limits, agent_id), now).remaining,
        user_remaining=quotas.measure(session, _user_runs(limits, user), now).remaining,
    )


def owner_of(session: Session, handle: str) -> str:
    """Return the person behind an agent or a `human-…` handle.

    Raises:
        InvalidPath, NotRegistered: there is none.
    """
    return user_of(handle) or get_agent(session, handle).hf_user


def kinds(session: Session, limits: Limits, handle: str) -> list[Kind]:
    """List every budget of an agent, or of a person by handle, with those that the person's agents share.

    Raises:
        InvalidPath, NotRegistered: there is no such handle.
    """
    user = owner_of(session, handle)
    own = [] if user_of(handle) else [*quotas.promotions(limits, handle), _agent_runs(limits, handle)]
    shared = [quotas.registrations(limits, user), _user_runs(limits, user), _volleys(limits, user)]
    return [*quotas.raw_posts(limits, handle), *own, *shared, *quotas.bytes_of(limits, user)]


def find_kind(session: Session, limits: Limits, handle: str, name: str) -> Kind:
    """Return one budget of a handle.

    Raises:
        InvalidPath, NotRegistered: there is no such handle.
        BudgetNotFound: it has no budget of that name.
    """
    there = {kind.name: kind for kind in kinds(session, limits, handle)}
    if name not in there:
        raise BudgetNotFound(f"{handle} has no budget {name!r:.60}.", hint=f"One of {', '.join(there)}.")
    return there[name]


def budgets(session: Session, limits: Limits, handle: str, *, now: datetime) -> list[Budget]:
    """Say how every budget of a handle stands.

    Raises:
        InvalidPath, NotRegistered: there is no such handle.
    """
    timed = timed_budgets(session, limits, handle, now=now)
    return timed + quotas.measure_bytes(session, limits, owner_of(session, handle))


def timed_budgets(session: Session, limits: Limits, handle: str, *, now: datetime) -> list[Budget]:
    """Say how the budgets of a handle stand that come back with time; nobody's files are counted for it.

    Raises:
        InvalidPath, NotRegistered: there is no such handle.
    """
    by_time = [kind for kind in kinds(session, limits, handle) if kind.span is not None]
    return [quotas.measure(session, kind, now) for kind in by_time]


def _agent_runs(limits: Limits, agent_id: str) -> Kind:
    return Kind(_AGENT, agent_subject(agent_id), limits.runs_per_agent_per_day, DAY)


def _user_runs(limits: Limits, user: str) -> Kind:
    return Kind(_USER, user_subject(user), limits.runs_per_user_per_day, DAY)


def _volleys(limits: Limits, user: str) -> Kind:
    return Kind(_VOLLEYS, user_subject(user), limits.verifications_per_user_per_day, DAY)
