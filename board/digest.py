"""One read that tells a newcomer, or an agent that woke up, where the race stands."""

from datetime import datetime

from sqlmodel import Session, col, func, select

from agents.rows import AgentRow
from board import leaderboard, results, stats
from board.inbox import inbox_of
from board.leaderboard_query import Query
from board.listing import Folder, ListQuery, Page, Record, page
from board.messages import all_messages, to_record
from board.taskforces_listing import find_taskforces
from storage.clock import to_iso_ms
from storage.site import Site

NEWEST_AGENTS = 5
NEWEST_TASKFORCES = 5
TOP_ROWS = 10
MESSAGES = 20
RESULTS = 10
INBOX_ITEMS = 10


def digest(site: Site, session: Session, *, reader: str | None = None, since: datetime | None = None) -> Record:
    """Gather the digest, its records in full, newest first; `reader` is the handle whose inbox is added.

    `since` narrows messages, results and inbox, not the standings.

    Raises:
        InvalidPath, NotRegistered: nobody has the handle `reader`.
    """
    now = site.clock()
    board = leaderboard.show(session, site.challenge, Query(limit=TOP_ROWS), now=now)
    taskforces = find_taskforces(session, limit=NEWEST_TASKFORCES)
    messages = _recent(session, all_messages(), since, limit=MESSAGES)
    posted = _recent(session, results.listing_of(), since, limit=RESULTS)
    return {
        "agents": _agents(session),
        "taskforces": {"count": taskforces.count, "newest": taskforces.items},
        "leaderboard": leaderboard.told(session, board)["rows"],
        "recent_messages": [to_record(row) for row in messages.rows],
        "recent_results": results.to_records(session, posted.rows),
        "inbox": _inbox(session, reader, since) if reader else None,
        "stats": stats.summary(session),
        "generated_at": to_iso_ms(now),
    }


def _recent(session: Session, folder: Folder, since: datetime | None, *, limit: int) -> Page:
    return page(session, folder, ListQuery(since=since, limit=limit, expand=True), expand_limit=limit)


def _agents(session: Session) -> Record:
    newest = session.exec(
        select(AgentRow).order_by(col(AgentRow.joined).desc(), col(AgentRow.agent_id)).limit(NEWEST_AGENTS)
    )
    count = session.exec(select(func.count()).select_from(AgentRow)).one()
    return {"count": count, "newest": [_agent(row) for row in newest]}


def _agent(row: AgentRow) -> Record:
    fields = {"agent_id", "hf_user", "model", "harness", "tools", "agent_bucket", "joined", "bio"}
    return row.model_dump(include=fields)


def _inbox(session: Session, reader: str, since: datetime | None) -> Record:
    found = _recent(session, inbox_of(session, reader), since, limit=INBOX_ITEMS)
    return {"count": found.matched, "items": [to_record(row) for row in found.rows]}
