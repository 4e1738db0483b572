"""Insert rows that may be there already, on SQLite and PostgreSQL alike."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from sqlalchemy import CursorResult, inspect
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, SQLModel

IN_LIMIT = 500
"""Most values in one `IN (…)`."""


def insert_new(session: Session, table: type[SQLModel], rows: Sequence[dict[str, Any]]) -> int:
    """Insert the rows whose key is free; return how many those were."""
    if not rows:
        return 0
    key = [column.name for column in inspect(table).primary_key]
    statement = _insert(session, table).on_conflict_do_nothing()
    counted = {"preserve_rowcount": True}  # PostgreSQL's driver counts inserted rows only when asked to
    result = session.execute(statement, _ordered(rows, key), execution_options=counted)
    return cast(CursorResult[Any], result).rowcount


def put(session: Session, table: type[SQLModel], rows: Sequence[dict[str, Any]], *, key: Sequence[str]) -> None:
    """Insert rows, or overwrite those of the same `key`; the last one wins."""
    if not rows:
        return
    statement = _insert(session, table)
    fresh = {name: statement.excluded[name] for name in rows[0] if name not in key}
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=fresh), _ordered(rows, key))


def slices(values: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut values into lists short enough for one `IN (…)`."""
    for start in range(0, len(values), IN_LIMIT):
        yield values[start : start + IN_LIMIT]


def _ordered(rows: Sequence[dict[str, Any]], key: Sequence[str]) -> list[dict[str, Any]]:
    """Put rows in the order of their key: two transactions that insert the same ones then don't deadlock."""
    return sorted(rows, key=lambda row: [row[name] for name in key])


def _insert(session: Session, table: type[SQLModel]) -> Any:
    """Begin an insert into the bare table: the ORM would ask for each new row back."""
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    return dialect.insert(table.__table__)  # type: ignore[attr-defined]  # SQLAlchemy adds it
