"""Benchmark runs per agent and per person in any 24 hours; runs that failed through us are given back."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, delete, func, select

from agents.limits import spend
from agents.rows import SpentRow
from storage.challenge import Limits

WINDOW = timedelta(hours=24)
_KIND = "benchmark-runs"


@dataclass(frozen=True)
class Quota:
    """Runs left in the last 24 hours."""

    agent_remaining: int
    user_remaining: int


def spend_run(session: Session, limits: Limits, *, agent_id: str, user: str, job_id: str, now: datetime) -> None:
    """Take one run from both budgets.

    Raises:
        RateLimited: one of them is spent; the caller rolls back.
    """
    spend(session, _agent(agent_id), limits.runs_per_agent_per_day, WINDOW, now, ref=job_id)
    spend(session, _user(user), limits.runs_per_user_per_day, WINDOW, now, ref=job_id)


def spend_verification(session: Session, limits: Limits, *, user: str, ref: str, now: datetime) -> None:
    """Take one volley from a person's budget.

    Raises:
        RateLimited: it is spent.
    """
    spend(session, f"verifications:user:{user}", limits.verifications_per_user_per_day, WINDOW, now, ref=ref)


def refund_run(session: Session, job_id: str) -> None:
    """Give back what a job took; again gives nothing."""
    session.exec(delete(SpentRow).where(col(SpentRow.ref) == job_id, col(SpentRow.budget).startswith(f"{_KIND}:")))


def left(session: Session, limits: Limits, *, agent_id: str, user: str, now: datetime) -> Quota:
    """Count the runs that are left."""
    return Quota(
        agent_remaining=limits.runs_per_agent_per_day - _used(session, _agent(agent_id), now),
        user_remaining=limits.runs_per_user_per_day - _used(session, _user(user), now),
    )


def _used(session: Session, budget: str, now: datetime) -> int:
    recent = select(func.count()).where(col(SpentRow.budget) == budget, col(SpentRow.at) > now - WINDOW)
    return session.exec(recent).one()


def _agent(agent_id: str) -> str:
    return f"{_KIND}:agent:{agent_id}"


def _user(user: str) -> str:
    return f"{_KIND}:user:{user}"
