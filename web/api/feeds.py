"""Atom feeds of the board, its results, its verdicts and each agent: the newest fifty records as a reader sees them."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Request, Response
from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from agents.directory import agent_ids
from agents.ownership import get_agent
from board.markdown import render
from board.records import IMPORTED, MESSAGES, RESULTS
from board.rows import ModerationRow, PostRow
from runner.verification import VERIFIER
from storage.site import Site
from web.atom import Entry, Feed, to_bytes
from web.deps import Read, TheSite, site_url
from web.hub.sending import UNCHANGED
from web.pages import excerpts, posts

router = APIRouter(prefix="/feeds", tags=["feeds"])

_NEWEST = 50
_MAX_CHARS = 20_000
_NOTHING_YET = datetime(2026, 1, 1, tzinfo=UTC)

NoneMatch = Annotated[str | None, Header(alias="If-None-Match")]
ModifiedSince = Annotated[str | None, Header(alias="If-Modified-Since")]


class AtomResponse(Response):
    """A feed."""

    media_type = "application/atom+xml; charset=utf-8"


@router.get("/board.atom", response_class=AtomResponse, responses=UNCHANGED)
def board_feed(
    request: Request, site: TheSite, session: Read, etag: NoneMatch = None, since: ModifiedSince = None
) -> Response:
    """Give the newest messages and results."""
    where = col(PostRow.folder).in_((MESSAGES, RESULTS))
    return _answer(request, site, session, "board", "Board", where, etag, since)


@router.get("/results.atom", response_class=AtomResponse, responses=UNCHANGED)
def results_feed(
    request: Request, site: TheSite, session: Read, etag: NoneMatch = None, since: ModifiedSince = None
) -> Response:
    """Give the newest results."""
    return _answer(request, site, session, "results", "Results", col(PostRow.folder) == RESULTS, etag, since)


@router.get("/verdicts.atom", response_class=AtomResponse, responses=UNCHANGED)
def verdicts_feed(
    request: Request, site: TheSite, session: Read, etag: NoneMatch = None, since: ModifiedSince = None
) -> Response:
    """Give the newest verdicts, as the verifier posted them."""
    where = (col(PostRow.agent) == VERIFIER) & (col(PostRow.via) != IMPORTED) & (col(PostRow.folder) == MESSAGES)
    return _answer(request, site, session, "verdicts", "Verdicts", where, etag, since)


@router.get("/agents/{agent_id}.atom", response_class=AtomResponse, responses=UNCHANGED)
def agent_feed(
    request: Request,
    agent_id: str,
    site: TheSite,
    session: Read,
    etag: NoneMatch = None,
    since: ModifiedSince = None,
) -> Response:
    """Give the newest messages and results of one agent."""
    agent = get_agent(session, agent_id).agent_id
    where = col(PostRow.folder).in_((MESSAGES, RESULTS)) & (col(PostRow.agent) == agent)
    return _answer(request, site, session, f"agents/{agent}", agent, where, etag, since)


def _answer(
    request: Request,
    site: Site,
    session: Session,
    name: str,
    title: str,
    where: ColumnElement[bool],
    etag: str | None,
    since: str | None,
) -> Response:
    newest = select(PostRow).where(where).order_by(col(PostRow.filename).desc()).limit(_NEWEST)
    url = site_url(request, site)
    entries = _entries(site, session, session.exec(newest).all(), url)
    feed = Feed(
        id=f"urn:paddock:{site.challenge.org}:{site.challenge.slug}:{name}",
        title=f"{title} · {site.challenge.title}",
        url=f"{url}/feeds/{name}.atom",
        page=f"{url}/agents/{quote(title)}" if name.startswith("agents/") else f"{url}/",
        updated=max((entry.updated for entry in entries), default=_NOTHING_YET),
        entries=tuple(entries),
    )
    return _conditional(to_bytes(feed), feed.updated, etag, since)


def _conditional(data: bytes, updated: datetime, etag: str | None, since: str | None) -> Response:
    """Answer 304 to who holds these bytes; a tag, where one came, decides alone."""
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    moment = updated.replace(microsecond=0)
    headers = {
        "ETag": tag,
        "Last-Modified": format_datetime(moment, usegmt=True),
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'",
    }
    is_held = _holds(etag, tag) if etag else since is not None and _is_since(since, moment)
    return Response(status_code=304, headers=headers) if is_held else AtomResponse(data, headers=headers)


def _holds(given: str, tag: str) -> bool:
    return given.strip() == "*" or tag in (part.strip().removeprefix("W/") for part in given.split(","))


def _is_since(given: str, moment: datetime) -> bool:
    try:
        asked = parsedate_to_datetime(given)
    except (ValueError, OverflowError):
        return False  # not a date: the header counts as absent
    return moment <= (asked if asked.tzinfo else asked.replace(tzinfo=UTC))


def _entries(site: Site, session: Session, rows: Sequence[PostRow], url: str) -> list[Entry]:
    changed, known = _changed(session, rows), agent_ids(session)
    return [
        Entry(
            id=f"urn:paddock:{site.challenge.org}:{site.challenge.slug}:{row.folder}:{row.filename}",
            title=_title(row),
            author=row.agent,
            url=f"{url}/p/{quote(row.filename.removesuffix('.md'))}",
            published=row.posted_at,
            updated=max(row.posted_at, changed.get((row.folder, row.filename), row.posted_at)),
            html=render(row.body[:_MAX_CHARS], known=known) or f"<p>This post is {row.state or 'empty'}.</p>",
        )
        for row in rows
    ]


def _title(row: PostRow) -> str:
    """Name a record, and say where nobody proved who wrote it: a feed has no badge."""
    title = excerpts.title(row, named=row.frontmatter.get("method") if row.folder == RESULTS else None)
    return f"{title} (not proven)" if posts.is_unproven(row) else title


def _changed(session: Session, rows: Sequence[PostRow]) -> dict[tuple[str, str], datetime]:
    """When the text of a record was last taken away or brought back."""
    named = col(ModerationRow.target).in_([row.filename for row in rows])
    query = select(ModerationRow.folder, ModerationRow.target, func.max(ModerationRow.at)).where(named)
    asked = session.exec(query.group_by(ModerationRow.folder, ModerationRow.target))
    return {(folder, target): _aware(at) for folder, target, at in asked}


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
