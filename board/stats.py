"""What the race's sessions took, as far as they say: a floor, with the unknown counted apart and never as 0."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from sqlmodel import Session, select

from board.listing import Record
from board.rows import TraceRow
from board.traces_manifest import COUNTS
from storage.clock import to_iso_ms

UNKNOWN = "unknown"


def stats(session: Session, *, now: datetime) -> Record:
    """Sum up every published session.

    `sessions_counted` report their total, `sessions_missing_tokens` don't; `missing` says for each kind of token
    how many of all sessions don't report it.
    """
    rows = list(session.exec(select(TraceRow)))
    counted = [row for row in rows if row.total_tokens is not None]
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    return {
        "tokens": {name: sum(_known(rows, name)) for name in COUNTS},
        "missing": {name: len(rows) - len(_known(rows, name)) for name in COUNTS},
        "cost_usd": sum(costs) if costs else None,
        "sessions_counted": len(counted),
        "sessions_missing_tokens": len(rows) - len(counted),
        "agents_reporting": len({row.agent for row in counted}),
        "by_model": _grouped(rows, lambda row: row.model or UNKNOWN),
        "by_agent": _grouped(rows, lambda row: row.agent),
        "by_day": _grouped(rows, lambda row: _day(row.started_at or row.promoted_at)),
        "generated_at": to_iso_ms(now),
    }


def summary(session: Session) -> Record | None:
    """The digest's short form; None while no session is published."""
    rows = list(session.exec(select(TraceRow.agent, TraceRow.total_tokens)))
    counted = [(agent, total) for agent, total in rows if total is not None]
    if not rows:
        return None
    return {
        "total_tokens": sum(total for _, total in counted),
        "sessions_counted": len(counted),
        "agents_reporting": len({agent for agent, _ in counted}),
    }


def _known(rows: Iterable[TraceRow], name: str) -> list[int]:
    found = (getattr(row, f"{name}_tokens") for row in rows)
    return [count for count in found if count is not None]


def _grouped(rows: Iterable[TraceRow], key: Callable[[TraceRow], str]) -> Record:
    groups: dict[str, Record] = {}
    for row in sorted(rows, key=key):
        group = groups.setdefault(key(row), {"total_tokens": 0, "sessions_counted": 0, "sessions_missing_tokens": 0})
        group["total_tokens"] += row.total_tokens or 0
        group["sessions_counted" if row.total_tokens is not None else "sessions_missing_tokens"] += 1
    return groups


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()
