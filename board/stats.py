"""What the race's sessions took, as far as they say: a floor, with the unknown counted apart and never as 0."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, SQLColumnExpression, literal_column
from sqlalchemy import select as select_many
from sqlmodel import Session, col, func, select

from board.listing import Record
from board.rows import TraceRow
from board.traces_manifest import COUNTS
from storage.clock import to_iso_ms

UNKNOWN = "unknown"
_SPLIT = 10**9
"""Tokens are summed up as billions and the rest: thousands of the largest counts overflow SQLite's whole numbers."""


def stats(session: Session, *, now: datetime) -> Record:
    """Sum up every published session.

    `sessions_counted` report their total, `sessions_missing_tokens` don't; `missing` says for each kind of token
    how many of all sessions don't report it.
    """
    sessions, cost = session.exec(select(func.count(), func.sum(TraceRow.cost_usd)).select_from(TraceRow)).one()
    tokens = {name: _summed(session, col(getattr(TraceRow, f"{name}_tokens"))) for name in COUNTS}
    counted = tokens["total"][1]
    return {
        "tokens": {name: total for name, (total, _) in tokens.items()},
        "missing": {name: sessions - reporting for name, (_, reporting) in tokens.items()},
        "cost_usd": cost,
        "sessions_counted": counted,
        "sessions_missing_tokens": sessions - counted,
        "agents_reporting": _agents(session),
        "by_model": _grouped(session, func.coalesce(func.nullif(TraceRow.model, ""), UNKNOWN)),
        "by_agent": _grouped(session, col(TraceRow.agent)),
        "by_day": _grouped(session, _day(session)),
        "generated_at": to_iso_ms(now),
    }


def summary(session: Session) -> Record | None:
    """The digest's short form; None while no session is published."""
    if session.exec(select(TraceRow.agent).limit(1)).first() is None:
        return None
    total, counted = _summed(session, col(TraceRow.total_tokens))
    return {"total_tokens": total, "sessions_counted": counted, "agents_reporting": _agents(session)}


def _summed(session: Session, tokens: SQLColumnExpression[int | None]) -> tuple[int, int]:
    """Sum one kind of token up, and count the sessions that report it."""
    billions, rest, count = session.execute(select_many(*_sum(tokens))).one()
    return _whole(billions, rest), count


def _sum(tokens: SQLColumnExpression[int | None]) -> Sequence[ColumnElement[Any]]:
    return func.sum(tokens // _SPLIT), func.sum(tokens % _SPLIT), func.count(tokens)


def _whole(billions: Any, rest: Any) -> int:
    """Put a sum together; a database gives none for no rows, and PostgreSQL decimals."""
    return int(billions or 0) * _SPLIT + int(rest or 0)


def _agents(session: Session) -> int:
    asked = select(func.count(col(TraceRow.agent).distinct()))
    return session.exec(asked.where(col(TraceRow.total_tokens).is_not(None))).one()


def _grouped(session: Session, key: SQLColumnExpression[Any]) -> Record:
    name: ColumnElement[Any] = key.label("name")
    sums = _sum(col(TraceRow.total_tokens))
    asked = select_many(name, func.count(), *sums).select_from(TraceRow).group_by("name").order_by("name")
    return {
        group: {
            "total_tokens": _whole(billions, rest),
            "sessions_counted": counted,
            "sessions_missing_tokens": sessions - counted,
        }
        for group, sessions, billions, rest, counted in session.execute(asked)
    }


def _day(session: Session) -> ColumnElement[Any]:
    """The day, in UTC, on which a session began, or was published if it doesn't say."""
    moment = func.coalesce(TraceRow.started_at, TraceRow.promoted_at)
    if session.get_bind().dialect.name == "postgresql":
        return func.to_char(func.timezone(literal_column("'UTC'"), moment), literal_column("'YYYY-MM-DD'"))
    return func.date(moment)  # SQLite's moments are in UTC and have no zone
