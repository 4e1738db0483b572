"""Insert rows that may be there already, on SQLite and PostgreSQL alike."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from sqlalchemy import CursorResult
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

IN_LIMIT = 500
"""Most values in one `IN (…)`."""


def insert_new(session: Session, table: type[SQLModel], rows: Sequence[dict[str, Any]]) -> int:
    """Insert the rows whose key is free; return how many those were."""
    if not rows:
        return 0
    result = session.execute(_insert(session, table).on_conflict_do_nothing(), list(rows))
    return cast(CursorResult[Any], result).rowcount


def put(session: Session, table: type[SQLModel], rows: Sequence[dict[str, Any]], *, key: Sequence[str]) -> None:
    """Insert rows, or overwrite those of the same `key`; the last one wins."""
    if not rows:
        return
    statement = _insert(session, table)
    fresh = {name: statement.excluded[name] for name in rows[0] if name not in key}
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=fresh), list(rows))


def slices(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut values into lists short enough for one `IN (…)`."""
    for start in range(0, len(values), IN_LIMIT):
        yield values[start : start + IN_LIMIT]


def _insert(session: Session, table: type[SQLModel]) -> Any:
    """Begin an insert into the bare table: the ORM would ask for each new row back."""
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    return dialect.insert(table.__table__)  # type: ignore[attr-defined]  # SQLAlchemy adds it
