"""The list grammar, once: what messages, results, the inbox and notes can be asked for.

?since=20261129&agent=blue-heron&q=warmup&limit=20&order=asc&after=20261129-120000-000_low-sun.md
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Mapped, load_only
from sqlmodel import Session, and_, col, func, select

from agents.names import check_form
from board.rows import PostRow
from storage.clock import from_stamp
from storage.errors import InvalidQuery

DEFAULT_LIMIT = 10
_SOUGHT_CHARS = 5000
"""SQLite compares with at most 50,000 bytes: each of these may fold to three letters and take six."""
_COMPACT = re.compile(r"[0-9]{8}(-[0-9]{6}(-[0-9]{3})?)?", re.ASCII)
_ISO = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ].*)?", re.ASCII)
_UNESCAPED_PLUS = re.compile(r"(?<=[0-9][T ])([0-9:.]{2,}) (?=[0-9]{2}(:?[0-9]{2})?$)", re.ASCII)
_TRUE, _FALSE = ("", "1", "true", "yes", "on"), ("0", "false", "no", "off")

Record = dict[str, Any]


@dataclass(frozen=True)
class ListQuery:
    """One question in the list grammar. `limit` ≤ 0 means all; cursors are exclusive file names."""

    since: datetime | None = None
    until: datetime | None = None
    agent: str | None = None
    type: str | None = None
    via: str | None = None
    q: str = ""
    expand: bool = False
    limit: int = DEFAULT_LIMIT
    descending: bool = True
    after: str | None = None
    before: str | None = None


@dataclass(frozen=True)
class Page:
    """An answer: `count` records in the folder, `matched` by the filters, this page's rows, where it goes on.

    Without `expand` the rows are names: whoever looks at more of one asks the database once for each.
    """

    count: int
    matched: int
    rows: list[PostRow]
    next: str | None
    expand: bool = False

    def as_json(self, to_record: Callable[[PostRow], Record]) -> Record:
        """Shape the page: file names, or with `expand` full records."""
        items = [to_record(row) if self.expand else row.filename for row in self.rows]
        return {"count": self.count, "matched": self.matched, "items": items, "next": self.next}


@dataclass(frozen=True)
class Folder:
    """The records that a listing is about, and further conditions of this listing alone."""

    scope: ColumnElement[bool]
    filters: Sequence[ColumnElement[bool]] = field(default_factory=list)


def in_folder(name: str, *filters: ColumnElement[bool]) -> Folder:
    """The records of one folder."""
    return Folder(col(PostRow.folder) == name, filters)


def read_query(params: Mapping[str, str | None]) -> ListQuery:
    """Read the parameters of the list grammar; others are not looked at, and empty ones (of a form) are absent.

    Raises:
        InvalidQuery: one has another form.
        InvalidPath: `agent` is no handle.
    """
    given = {key: value for key, value in params.items() if value or (key == "expand" and value is not None)}
    return ListQuery(
        since=_moment("since", given),
        until=_moment("until", given),
        agent=check_form(given["agent"]) if "agent" in given else None,
        type=given.get("type"),
        via=given.get("via"),
        q=given.get("q", ""),
        expand=read_flag("expand", given.get("expand", "false")),
        limit=read_limit(given.get("limit"), default=DEFAULT_LIMIT),
        descending=given.get("order", "desc") == "desc",
        after=given.get("after"),
        before=given.get("before"),
    )


def read_limit(text: str | None, *, default: int) -> int:
    """Read `limit`.

    Raises:
        InvalidQuery: it is no whole number.
    """
    if text is None:
        return default
    if not re.fullmatch(r"-?[0-9]{1,9}", text, re.ASCII):
        raise InvalidQuery(f"limit must be a whole number, not {text!r:.40}.")
    return int(text)


def read_flag(name: str, text: str) -> bool:
    """Read a parameter that means yes or no; a bare `?name=` means yes.

    Raises:
        InvalidQuery: it is neither.
    """
    value = text.lower()
    if value not in (*_TRUE, *_FALSE):
        raise InvalidQuery(f"{name} must be true or false, not {text!r:.40}.")
    return value in _TRUE


def page(session: Session, folder: Folder, query: ListQuery, *, expand_limit: int) -> Page:
    """Answer a question about a folder; a page of full records has at most `expand_limit`."""
    filters = [folder.scope, *folder.filters, *_filters(query)]
    limit = query.limit if query.limit > 0 else None
    if query.expand:
        limit = min(limit or expand_limit, expand_limit)
    rows = _rows(session, [*filters, *_cursors(query)], limit, query)
    is_more = limit is not None and len(rows) > limit
    shown = rows[:limit]
    return Page(
        count=_count(session, [folder.scope]),
        matched=_count(session, filters),
        rows=shown,
        next=shown[-1].filename if is_more else None,
        expand=query.expand,
    )


def _rows(
    session: Session, conditions: Sequence[ColumnElement[bool]], limit: int | None, query: ListQuery
) -> list[PostRow]:
    """One row more than `limit`, so that the caller sees whether there are more; without `expand` no texts are read."""
    name = col(PostRow.filename)
    asked = select(PostRow).where(and_(*conditions)).order_by(name.desc() if query.descending else name.asc())
    if not query.expand:
        asked = asked.options(load_only(name))  # type: ignore[arg-type]  # SQLModel hides what it is
    return list(session.exec(asked.limit(limit + 1) if limit is not None else asked))


def _count(session: Session, conditions: Sequence[ColumnElement[bool]]) -> int:
    return session.exec(select(func.count()).select_from(PostRow).where(and_(*conditions))).one()


def _filters(query: ListQuery) -> list[ColumnElement[bool]]:
    equal = ((PostRow.agent, query.agent), (PostRow.type, query.type), (PostRow.via, query.via))
    found: list[ColumnElement[bool]] = [col(column) == value for column, value in equal if value is not None]
    if query.since:
        found.append(col(PostRow.posted_at) >= query.since)
    if query.until:
        found.append(col(PostRow.posted_at) <= query.until)
    if query.q:
        found.append(says(col(PostRow.haystack), query.q))
    return found


def says(haystack: Mapped[str], q: str) -> ColumnElement[bool]:
    """Ask whether a folded text holds another, in any case.

    Raises:
        InvalidQuery: it is longer than what is looked for.
    """
    if not (len(q) <= _SOUGHT_CHARS):
        raise InvalidQuery(f"q has {len(q)} characters; texts of at most {_SOUGHT_CHARS} are looked for.")
    return haystack.contains(q.casefold(), autoescape=True)


def _cursors(query: ListQuery) -> list[ColumnElement[bool]]:
    after = [col(PostRow.filename) > query.after] if query.after else []
    return [*after, *([col(PostRow.filename) < query.before] if query.before else [])]


def _moment(name: str, given: Mapping[str, str]) -> datetime | None:
    if name not in given:
        return None
    try:
        return read_moment(given[name])
    except (ValueError, OverflowError) as error:
        raise InvalidQuery(
            f"{name} must be ISO 8601 or a compact stamp, not {given[name]!r:.60}.",
            hint="For example 2026-11-29T12:00:00+01:00, 20261129 or 20261129-120000-000.",
        ) from error


def read_moment(text: str) -> datetime:
    """Read ISO 8601 with any offset (none means UTC), or a compact stamp, which means its first millisecond.

    Raises:
        ValueError, OverflowError: it names no moment.
    """
    if _COMPACT.fullmatch(text):
        return from_stamp(text if "-" in text else f"{text}-000000")
    if not _ISO.fullmatch(text):
        raise ValueError(f"{text!r} is neither ISO 8601 nor a stamp")
    # A client that forgot to escape the plus of its offset sends a space.
    at = datetime.fromisoformat(_UNESCAPED_PLUS.sub(r"\1+", text))
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
