"""The audit log: one row per write, saying who did what to what, by what proof, from where."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from agents.rows import AuditRow
from agents.tokens import Caller

NO_PROOF = "none"


@dataclass(frozen=True)
class AuditQuery:
    """Which lines, newest first unless not `descending`; `limit` ≤ 0 means all; cursors are exclusive ids."""

    since: datetime | None = None
    until: datetime | None = None
    actor: str | None = None
    action: str | None = None
    limit: int = 50
    descending: bool = True
    after: int | None = None
    before: int | None = None


@dataclass(frozen=True)
class AuditPage:
    """Lines found: `count` of all, `matched` after the filters, and the id at which it goes on."""

    count: int
    matched: int
    rows: Sequence[AuditRow]
    next: int | None


def record(
    session: Session, *, caller: Caller | None, action: str, target: str, now: datetime, origin: str = ""
) -> None:
    """Note a write of `caller`, or of somebody without a token.

    `origin` is the address it came from, or for a command of the operator's `shell:` and its machine's user.
    """
    actor = caller.user if caller else ""
    session.add(AuditRow(at=now, actor=actor, proof=proof_of(caller), origin=origin, action=action, target=target))


def proof_of(caller: Caller | None) -> str:
    """Name what the caller showed: `token:tok_…`, `session:ses_…`, `server:…`, or `none`."""
    return f"{caller.proof}:{caller.token_id}" if caller else NO_PROOF


def find(session: Session, query: AuditQuery) -> AuditPage:
    """List lines of the log."""
    filters, limit = _filters(query), query.limit if query.limit > 0 else None
    order = col(AuditRow.id).desc() if query.descending else col(AuditRow.id).asc()
    asked = select(AuditRow).where(*filters, *_cursors(query)).order_by(order)
    rows = session.exec(asked.limit(limit + 1) if limit is not None else asked).all()
    shown = rows[:limit]
    is_more = limit is not None and len(rows) > limit
    return AuditPage(_count(session, []), _count(session, filters), shown, shown[-1].id if is_more else None)


def _count(session: Session, filters: Sequence[ColumnElement[bool]]) -> int:
    return session.exec(select(func.count()).select_from(AuditRow).where(*filters)).one()


def _filters(query: AuditQuery) -> list[ColumnElement[bool]]:
    bounds = [col(AuditRow.at) >= query.since] if query.since else []
    bounds += [col(AuditRow.at) <= query.until] if query.until else []
    equal = ((AuditRow.actor, query.actor), (AuditRow.action, query.action))
    return [*bounds, *(col(column) == value for column, value in equal if value is not None)]


def _cursors(query: AuditQuery) -> list[ColumnElement[bool]]:
    after = [col(AuditRow.id) > query.after] if query.after is not None else []
    return [*after, *([col(AuditRow.id) < query.before] if query.before is not None else [])]
