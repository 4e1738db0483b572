"""Reading traces: the listing with its own cursors, and one session.

A cursor is `2026-11-29T12:00:00.000Z|blue-heron/0b7c9a52`, exclusive: when it was promoted, then which it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, UnaryExpression
from sqlalchemy.orm import load_only
from sqlmodel import Session, and_, asc, col, desc, func, or_, select

from agents.names import check_form
from board.attribution import level_of
from board.listing import DEFAULT_LIMIT, Record, read_flag, read_limit, read_moment, says
from board.rows import TraceRow
from board.traces_index import folder_of
from board.traces_manifest import FILE, check_session_id
from storage.clock import to_iso_ms
from storage.errors import InvalidQuery, NotFound
from storage.site import Site

EXCERPT_CHARS = 280
_NAMED_BY = (col(TraceRow.promoted_at), col(TraceRow.agent), col(TraceRow.session_id))
"""What a cursor names; without `expand` nothing else is read."""


class TraceNotFound(NotFound):
    """Nobody published that session."""

    code = "NOT_FOUND"


@dataclass(frozen=True)
class Cursor:
    """A place in the listing."""

    promoted_at: datetime
    agent: str
    session_id: str


@dataclass(frozen=True)
class TraceQuery:
    """Which sessions, from where; `limit` ≤ 0 means all."""

    agent: str | None = None
    harness: str | None = None
    model: str | None = None
    share: str | None = None
    q: str = ""
    expand: bool = False
    limit: int = DEFAULT_LIMIT
    descending: bool = True
    after: Cursor | None = None
    before: Cursor | None = None


@dataclass(frozen=True)
class TracePage:
    """An answer: `count` sessions in all, `matched` by the filters, this page's, where it goes on."""

    count: int
    matched: int
    rows: list[TraceRow]
    next: str | None
    expand: bool

    def as_json(self) -> Record:
        """Shape the page: names, or with `expand` records."""
        items = [to_record(row) if self.expand else f"{row.agent}/{row.session_id}" for row in self.rows]
        return {"count": self.count, "matched": self.matched, "items": items, "next": self.next}


def read_query(params: Mapping[str, str | None]) -> TraceQuery:
    """Read the listing's parameters; empty ones are absent.

    Raises:
        InvalidQuery, InvalidPath: one has another form.
    """
    given = {key: value for key, value in params.items() if value or (key == "expand" and value is not None)}
    return TraceQuery(
        agent=check_form(given["agent"]) if "agent" in given else None,
        harness=given.get("harness"),
        model=given.get("model"),
        share=given.get("share"),
        q=given.get("q", ""),
        expand=read_flag("expand", given.get("expand", "false")),
        limit=read_limit(given.get("limit"), default=DEFAULT_LIMIT),
        descending=given.get("order", "desc") == "desc",
        after=_cursor("after", given.get("after")),
        before=_cursor("before", given.get("before")),
    )


def find_traces(session: Session, query: TraceQuery, *, expand_limit: int) -> TracePage:
    """List sessions by when they were promoted; a page of records has at most `expand_limit`."""
    filters = _filters(query)
    limit = query.limit if query.limit > 0 else None
    if query.expand:
        limit = min(limit or expand_limit, expand_limit)
    asked = select(TraceRow).where(*filters, *_between(query)).order_by(*_order(query))
    if not query.expand:
        asked = asked.options(load_only(*_NAMED_BY))  # type: ignore[arg-type]  # SQLModel hides what they are
    rows = list(session.exec(asked.limit(limit + 1) if limit is not None else asked))
    shown, is_more = rows[:limit], limit is not None and len(rows) > limit
    return TracePage(
        count=session.exec(select(func.count()).select_from(TraceRow)).one(),
        matched=session.exec(select(func.count()).select_from(TraceRow).where(*filters)).one(),
        rows=shown,
        next=cursor_of(shown[-1]) if is_more else None,
        expand=query.expand,
    )


def describe(site: Site, session: Session, agent_id: str, session_id: str) -> Record:
    """Show one session: its numbers, its manifest as a record, the files that are published of it.

    Raises:
        InvalidPath: those can be no names.
        TraceNotFound: nobody published it.
    """
    row = session.get(TraceRow, (check_form(agent_id), check_session_id(session_id)))
    if row is None:
        raise TraceNotFound(f"There is no trace {agent_id}/{session_id}.", hint="GET /v1/traces lists them.")
    folder = folder_of(agent_id, session_id)
    files = site.buckets(session).list(site.central, folder)
    return {
        **to_record(row),
        "manifest": {"filename": FILE, "frontmatter": row.frontmatter, "body": row.body},
        "files": [{"path": file.path.removeprefix(f"{folder}/"), "size": file.size} for file in files],
    }


def to_record(row: TraceRow) -> Record:
    """Shape a session's record; what it doesn't report is null."""
    return {
        "agent": row.agent,
        "session_id": row.session_id,
        "harness": row.harness,
        "model": row.model or None,
        "share": row.share,
        "completeness": row.completeness,
        "promoted_at": to_iso_ms(row.promoted_at),
        "started_at": to_iso_ms(row.started_at) if row.started_at else None,
        "total_tokens": row.total_tokens,
        "tool_calls": row.tool_calls,
        "result_ref": row.result_ref or None,
        "summary_excerpt": " ".join(row.body.split())[:EXCERPT_CHARS],
        "path": f"{folder_of(row.agent, row.session_id)}/",
        "primary_log_file": row.primary_log_file or None,
        "proof": level_of(row.frontmatter),
    }


def cursor_of(row: TraceRow) -> str:
    """Write the place of a session in the listing."""
    return f"{to_iso_ms(row.promoted_at)}|{row.agent}/{row.session_id}"


def _cursor(name: str, text: str | None) -> Cursor | None:
    if text is None:
        return None
    moment, _, place = text.partition("|")
    agent, slash, session_id = place.partition("/")
    try:
        promoted_at = read_moment(moment)
    except (ValueError, OverflowError) as error:
        raise _no_cursor(name, text) from error
    if not slash:
        raise _no_cursor(name, text)
    return Cursor(promoted_at, agent, session_id)


def _no_cursor(name: str, text: str) -> InvalidQuery:
    return InvalidQuery(
        f"{name} must be promoted_at|agent/session, not {text!r:.120}.", hint="Send back what next says."
    )


def _filters(query: TraceQuery) -> list[ColumnElement[bool]]:
    row = TraceRow
    equal = ((row.agent, query.agent), (row.harness, query.harness), (row.model, query.model), (row.share, query.share))
    found: list[ColumnElement[bool]] = [col(column) == value for column, value in equal if value is not None]
    if query.q:
        found.append(says(col(row.haystack), query.q))
    return found


def _between(query: TraceQuery) -> list[ColumnElement[bool]]:
    at, agent, session_id = col(TraceRow.promoted_at), col(TraceRow.agent), col(TraceRow.session_id)
    found: list[ColumnElement[bool]] = []
    if query.after:
        place = query.after
        within = and_(agent == place.agent, session_id > place.session_id)
        found.append(or_(at > place.promoted_at, and_(at == place.promoted_at, or_(agent > place.agent, within))))
    if query.before:
        place = query.before
        within = and_(agent == place.agent, session_id < place.session_id)
        found.append(or_(at < place.promoted_at, and_(at == place.promoted_at, or_(agent < place.agent, within))))
    return found


def _order(query: TraceQuery) -> list[UnaryExpression[Any]]:
    return [desc(column) if query.descending else asc(column) for column in _NAMED_BY]
