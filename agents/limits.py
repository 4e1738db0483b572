"""Sliding-window limits, counted in the database: they survive a restart and hold across processes.

A use is a row. Windows that one call spends are looked at together before any is touched, so a refused call costs
nothing. What was found stays in `session.info` for whoever tells the caller.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Any

from sqlmodel import Session, col, delete, select

from agents.backends import counting
from agents.rows import SpentRow
from storage.database import hold
from storage.errors import TooMany

_SPENT = "spent budgets"


class RateLimited(TooMany):
    """A budget is spent for now."""

    code = "RATE_LIMITED"


@dataclass(frozen=True)
class Window:
    """At most `limit` uses of `budget` (`raw_posts_per_min:agent:blue-heron`) in any `span`; None is no limit."""

    budget: str
    limit: int | None
    span: timedelta


@dataclass(frozen=True)
class Level:
    """How full a window is at `at`: its uses, when the oldest of them leaves, when there is room for one more."""

    window: Window
    at: datetime
    used: int
    oldest_leaves_at: datetime | None
    room_at: datetime

    @property
    def remaining(self) -> int | None:
        """Uses that are left; None where there is no limit."""
        return None if self.window.limit is None else max(0, self.window.limit - self.used)

    @property
    def reset_s(self) -> int:
        """Whole seconds until the oldest use leaves the window; 0 where there is none."""
        return _seconds_until(self.oldest_leaves_at, self.at) if self.oldest_leaves_at else 0


def spend(session: Session, budget: str, limit: int, window: timedelta, now: datetime, *, ref: str = "") -> None:
    """Take one use from one budget, of which any `window` holds `limit`.

    Raises:
        RateLimited: as `take`.
    """
    take(session, [Window(budget, limit, window)], now, ref=ref)


@counting()
def take(session: Session, windows: Sequence[Window], now: datetime, *, ref: str = "") -> None:
    """Take one use from each window; uses that have left them are removed.

    Raises:
        RateLimited: one is full; after `retry_after_s` whole seconds, and not before, all have room. Nothing is spent.
    """
    hold(session, {window.budget for window in windows})
    levels = [level(session, window, now) for window in windows]
    full = [found for found in levels if found.remaining == 0]
    if full:
        _note(session, full)
        raise _refusal(max(full, key=lambda found: found.room_at), now)
    for window in windows:
        has_left = col(SpentRow.at) <= now - window.span
        session.exec(delete(SpentRow).where(col(SpentRow.budget) == window.budget, has_left))
        session.add(SpentRow(budget=window.budget, at=now, ref=ref))
    session.flush()
    _note(session, [level(session, window, now) for window in windows])


def level(session: Session, window: Window, now: datetime) -> Level:
    """Count the uses of a window."""
    query = select(SpentRow.at).where(SpentRow.budget == window.budget, col(SpentRow.at) > now - window.span)
    uses = list(session.exec(query.order_by(col(SpentRow.at))))
    leaves = [at + window.span for at in uses]
    return Level(window, now, len(uses), leaves[0] if leaves else None, _room_at(window, leaves, now))


def clear(session: Session, window: Window) -> None:
    """Forget every use of a window."""
    session.exec(delete(SpentRow).where(col(SpentRow.budget) == window.budget))


def tightest(info: Mapping[Any, Any]) -> Level | None:
    """Return the lowest level among the windows that a session of this `info` took from; None if none has a limit."""
    levels: dict[str, Level] = info.get(_SPENT, {})
    left = [(found.remaining, at) for at, found in enumerate(levels.values()) if found.remaining is not None]
    return list(levels.values())[min(left)[1]] if left else None


def _note(session: Session, levels: list[Level]) -> None:
    session.info.setdefault(_SPENT, {}).update({found.window.budget: found for found in levels})


def _room_at(window: Window, leaves: list[datetime], now: datetime) -> datetime:
    """Say when fewer uses than the limit are left; under a limit of 0 never, and one span is as good as any."""
    if window.limit is None or len(leaves) < window.limit:
        return now
    return leaves[len(leaves) - window.limit] if window.limit else now + window.span


def _refusal(full: Level, now: datetime) -> RateLimited:
    wait_s = _seconds_until(full.room_at, now)
    noun = full.window.budget.partition(":")[0].partition("_per_")[0].removesuffix("_burst").replace("_", " ")
    span = f"{full.window.span.total_seconds():g} s"
    message = f"The limit of {full.window.limit} {noun} in {span} is reached."
    return RateLimited(message, retry_after_s=wait_s, hint=f"Try again in {wait_s} s.")


def _seconds_until(moment: datetime, now: datetime) -> int:
    return max(1, ceil((moment - now) / timedelta(seconds=1)))
