"""Who is here: look-ups over registrations and people."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from agents.names import user_of
from agents.ownership import NotRegistered, get_agent
from agents.registrations import FOLDER
from agents.rows import AgentRow, UserRow
from agents.sources import MAX_BYTES
from storage.site import Site

_AT_ONCE = 50


@dataclass(frozen=True)
class AgentQuery:
    """Which registrations, in which order; `limit` ≤ 0 means all."""

    q: str = ""
    hf_user: str | None = None
    model: str | None = None
    harness: str | None = None
    limit: int = 0
    descending: bool = False


@dataclass(frozen=True)
class AgentPage:
    """Registrations found: the ids of this page, `count` of all, `matched` after the filters."""

    count: int
    matched: int
    ids: list[str]


def find_agents(session: Session, query: AgentQuery) -> AgentPage:
    """List registrations by id. What they say is read a few at a time, and only where `q` looks for text in it."""
    equal = ((AgentRow.hf_user, query.hf_user), (AgentRow.model, query.model), (AgentRow.harness, query.harness))
    here = [col(column) == value for column, value in equal if value is not None]
    agent_id = col(AgentRow.agent_id)
    order = agent_id.desc() if query.descending else agent_id.asc()
    limit = query.limit if query.limit > 0 else None
    count = _count(session, [])
    if query.q:
        found = _saying(session, query.q, here, order)
        return AgentPage(count, len(found), found[:limit])
    ids = session.exec(select(AgentRow.agent_id).where(*here).order_by(order).limit(limit))
    return AgentPage(count, _count(session, here), list(ids))


def page_of_ids(session: Session, *, after: str, limit: int) -> list[str]:
    """List the next ids after one, by name."""
    behind = select(AgentRow.agent_id).where(AgentRow.agent_id > after).order_by(AgentRow.agent_id)
    return list(session.exec(behind.limit(limit)))


def count_agents(session: Session, *, after: str = "") -> int:
    """Count the registered agents whose id comes after one."""
    return _count(session, [col(AgentRow.agent_id) > after])


def _count(session: Session, here: Sequence[ColumnElement[bool]]) -> int:
    return session.exec(select(func.count()).select_from(AgentRow).where(*here)).one()


def _saying(session: Session, q: str, here: Sequence[ColumnElement[bool]], order: ColumnElement[str]) -> list[str]:
    """List those whose registration holds a text, in any case."""
    rows = session.exec(select(AgentRow).where(*here).order_by(order).execution_options(yield_per=_AT_ONCE))
    return [row.agent_id for row in rows if q.casefold() in _said(row).casefold()]


def _said(row: AgentRow) -> str:
    return "\n".join([row.agent_id, row.hf_user, row.model, row.harness, *row.tools, row.bio])


def raw_files(site: Site, session: Session) -> list[dict[str, str]]:
    """List every registration's file whole, by name; one that is larger than a record may be is left out.

    Bytes that are no text are shown as U+FFFD: a damaged file must not hide the others.
    """
    buckets = site.buckets(session)
    files = [file for file in buckets.list(site.central, FOLDER) if file.path.endswith(".md")]
    return [
        {
            "filename": file.path.removeprefix(f"{FOLDER}/"),
            "content": buckets.read(site.central, file.path, max_bytes=MAX_BYTES).decode("utf-8", "replace"),
        }
        for file in files
        if file.size <= MAX_BYTES
    ]


def agent_ids(session: Session) -> frozenset[str]:
    """The id of every registered agent."""
    return frozenset(session.exec(select(AgentRow.agent_id)))


def check_known(session: Session, handle: str) -> str:
    """Return the handle of a registered agent or of a person with an account.

    Raises:
        InvalidPath: that is no handle.
        NotRegistered: nobody has it.
    """
    user = user_of(handle)
    if user is None:
        return get_agent(session, handle).agent_id
    if session.get(UserRow, user) is None:
        raise NotRegistered(f"There is no user {user}.")
    return handle
