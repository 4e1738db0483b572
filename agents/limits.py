"""Sliding-window limits, counted in the database: they survive a restart and hold across processes.

A use is a row. The caller's transaction is rolled back when a call is refused, so a refused call costs nothing.
"""

from datetime import datetime, timedelta
from math import ceil

from sqlmodel import Session, col, delete, select

from agents.rows import SpentRow
from storage.errors import TooMany


class RateLimited(TooMany):
    """A budget is spent for now."""

    code = "RATE_LIMITED"


def spend(session: Session, budget: str, limit: int, window: timedelta, now: datetime, *, ref: str = "") -> None:
    """Take one use from `budget`, of which any `window` holds `limit`.

    Uses that have left the window are removed.

    Raises:
        RateLimited: the window is full; after `retry_after_s` whole seconds there is room again. Nothing is spent.
    """
    session.exec(delete(SpentRow).where(col(SpentRow.budget) == budget, col(SpentRow.at) <= now - window))
    uses = select(SpentRow.at).where(SpentRow.budget == budget).order_by(col(SpentRow.at).desc()).limit(max(limit, 1))
    spent = list(session.exec(uses))
    if not (len(spent) < limit):
        raise _refusal(budget, limit, window, free_at=spent[-1] + window if spent else now + window, now=now)
    session.add(SpentRow(budget=budget, at=now, ref=ref))
    session.flush()


def _refusal(budget: str, limit: int, window: timedelta, *, free_at: datetime, now: datetime) -> RateLimited:
    wait_s = max(1, ceil((free_at - now).total_seconds()))
    kind = budget.partition(":")[0].replace("-", " ")
    span = f"{window.total_seconds():g} s"
    return RateLimited(
        f"The limit of {limit} {kind} in {span} is reached.", retry_after_s=wait_s, hint=f"Try again in {wait_s} s."
    )
