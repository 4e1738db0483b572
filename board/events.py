"""What changed on the board, as a sequence that readers follow: rising ids, in the order of commits.

    41  message     {"filename": "20261129-120000-000_blue-heron.md", "agent": "blue-heron", "thread": …}
    42  moderation  {"action": "hide", "filename": …, "by": "human-ada"}

An event is written in the transaction of its change. It names what changed and never carries what somebody wrote.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlmodel import Session, col, delete, func, select

from board.changes import take_turn
from board.rows import EventRow

KEPT = timedelta(days=7)
_TRIM_EVERY = 50  # events


class Kind(StrEnum):
    """What an event is about."""

    MESSAGE = "message"
    RESULT = "result"
    NOTE = "note"
    TASKFORCE = "taskforce"
    FILE = "file"
    TRACE = "trace"
    VERDICT = "verdict"
    JOB = "job"
    MODERATION = "moderation"


def record(session: Session, kind: Kind, data: dict[str, Any], *, now: datetime) -> None:
    """Add an event; now and then drop those older than a week."""
    take_turn(session)
    row = EventRow(at=now, kind=kind, data=data)
    session.add(row)
    session.flush()
    if row.id is not None and row.id % _TRIM_EVERY == 0:
        trim(session, now)


def trim(session: Session, now: datetime) -> None:
    """Drop events older than a week, never the newest: it says how far the sequence has come."""
    newest = newest_id(session)
    session.exec(delete(EventRow).where(col(EventRow.at) < now - KEPT, col(EventRow.id) < newest))


def after(session: Session, last: int, *, limit: int) -> list[EventRow]:
    """List the events after id `last`, in order."""
    query = select(EventRow).where(col(EventRow.id) > last).order_by(col(EventRow.id)).limit(limit)
    return list(session.exec(query))


def newest_id(session: Session) -> int:
    """Tell the id of the newest event; 0 before the first."""
    return session.exec(select(func.max(EventRow.id))).one() or 0


def is_gap(session: Session, last: int) -> bool:
    """Tell whether something may be missing after id `last`: events were dropped since, or it was never given out."""
    oldest, newest = session.exec(select(func.min(EventRow.id), func.max(EventRow.id))).one()
    return not (0 <= last <= (newest or 0)) or last + 1 < (oldest or 1)
