"""Who is here: look-ups over registrations and people."""

from dataclasses import dataclass

from sqlmodel import Session, col, select

from agents.names import user_of
from agents.ownership import NotRegistered, get_agent
from agents.registrations import FOLDER
from agents.rows import AgentRow, UserRow
from agents.sources import MAX_BYTES
from storage.site import Site


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
    """Registrations found: `count` of all, `matched` after the filters."""

    count: int
    matched: int
    rows: list[AgentRow]


def find_agents(session: Session, query: AgentQuery) -> AgentPage:
    """List registrations by id."""
    everyone = list(session.exec(select(AgentRow).order_by(col(AgentRow.agent_id))))
    found = [row for row in everyone if _matches(row, query)]
    ordered = found[::-1] if query.descending else found
    return AgentPage(len(everyone), len(found), ordered[: query.limit] if query.limit > 0 else ordered)


def _matches(row: AgentRow, query: AgentQuery) -> bool:
    wanted = ((query.hf_user, row.hf_user), (query.model, row.model), (query.harness, row.harness))
    text = "\n".join([row.agent_id, row.hf_user, row.model, row.harness, *row.tools, row.bio])
    return all(asked in (None, has) for asked, has in wanted) and query.q.casefold() in text.casefold()


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
