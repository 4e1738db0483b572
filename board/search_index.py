"""What can be found: kept in the transaction that changes what it is about, and rebuilt with every other index."""

import hashlib
from enum import StrEnum

from sqlalchemy import Connection, delete, event, insert, select
from sqlalchemy.orm import Mapper
from sqlmodel import Session, col

from agents.rows import AgentRow
from board.rows import SearchRow
from board.search_engines import engine_of
from board.search_terms import spellings


class Kind(StrEnum):
    """What a hit is."""

    POSTS = "posts"
    RESULTS = "results"
    AGENTS = "agents"


def put(connection: Connection, kind: Kind, name: str, *, title: str, body: str) -> None:
    """Let `name` be found by its words, and by those it had before no longer."""
    titled, said = spellings(title), spellings(body)
    digest = hashlib.sha256("\n".join([" ".join(titled), " ".join(said)]).encode()).hexdigest()
    known = _find(connection, kind, name)
    if known is not None and known[1] == digest:
        return
    if known is not None:
        drop(connection, kind, name)
    added = connection.execute(insert(SearchRow).values(kind=kind.value, name=name, digest=digest))
    number = added.inserted_primary_key
    assert number is not None  # the key is the database's to give
    engine_of(connection).put(connection, number[0], titled, said)


def drop(connection: Connection, kind: Kind, name: str) -> None:
    """Let `name` be found no longer."""
    known = _find(connection, kind, name)
    if known is not None:
        engine_of(connection).drop(connection, known[0])
        connection.execute(delete(SearchRow).where(col(SearchRow.id) == known[0]))


def clear(session: Session) -> None:
    """Forget every word, for a rebuild that has dropped the rows of `SearchRow`."""
    connection = session.connection()
    engine_of(connection).clear(connection)


def _find(connection: Connection, kind: Kind, name: str) -> tuple[int, str] | None:
    asked = select(col(SearchRow.id), col(SearchRow.digest))
    row = connection.execute(asked.where(col(SearchRow.kind) == kind.value, col(SearchRow.name) == name)).first()
    return (row[0] or 0, row[1]) if row else None


def _follow_agent(_mapper: Mapper[AgentRow], connection: Connection, row: AgentRow) -> None:
    """Keep an agent findable; its row is written by a package that knows nothing of the board."""
    about = [row.hf_user, row.model, row.harness, *row.tools, row.bio]
    put(connection, Kind.AGENTS, row.agent_id, title=row.agent_id, body="\n".join(about))


event.listen(AgentRow, "after_insert", _follow_agent)
event.listen(AgentRow, "after_update", _follow_agent)
