"""`/`: what is said and measured, newest activity first; who leads; what runs; how to join."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request, Response
from sqlmodel import Session

from board.rows import PostRow, ResultRow
from runner.verification import VERIFIER
from storage.site import Site
from web.deps import Read, TheSite, site_url
from web.pages import excerpts, moments, posts, runs, standings, threads
from web.pages.frame import page
from web.pages.joining import Joining, joining
from web.pages.moments import Moment
from web.pages.posts import Measurement
from web.pages.runs import JobLine
from web.pages.standings import Standing
from web.pages.threads import ThreadHead

router = APIRouter(include_in_schema=False)

_PAGE = 20
_LEADING = 6
_TRACK = 4


@dataclass(frozen=True)
class FeedItem:
    """One thread in the feed: its root's title, its newest post's words, its result if it is one."""

    root: str
    title: str
    text: str
    agent: str
    verb: str
    is_unproven: bool
    posts: int
    result: Measurement | None
    at: Moment


@dataclass(frozen=True)
class BoardView:
    """The front page; `seen` is the newest post the reader has, `fresh` counts what came after it."""

    template: ClassVar[str] = "board.html"

    race_title: str
    description: str
    best: Standing | None
    unit: str
    feed: tuple[FeedItem, ...]
    is_first: bool
    older: str
    seen: str
    fresh: int
    leading: tuple[Standing, ...]
    verified: int
    track: tuple[JobLine, ...]
    waiting: int
    joining: Joining


@router.get("/")
def board(
    request: Request,
    site: TheSite,
    session: Read,
    before: Annotated[str, Query(max_length=200)] = "",
    seen: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the board."""
    return page(request, board_view(site, session, url=site_url(request, site), before=before, seen=seen))


def board_view(site: Site, session: Session, *, url: str, before: str = "", seen: str = "") -> BoardView:
    """Read one page of the board; `url` is this site's address."""
    heads = threads.active(session, before=before or None, limit=_PAGE + 1)
    shown = heads[:_PAGE]
    placed = standings.verified(site, session, limit=_LEADING)
    leading = placed.rows
    since = seen or threads.newest(session)
    return BoardView(
        race_title=site.challenge.title,
        description=site.challenge.description,
        best=leading[0] if leading else None,
        unit=site.challenge.score.unit,
        feed=_feed(session, shown, now=site.clock()),
        is_first=not before,
        older=shown[-1].newest if len(heads) > _PAGE else "",
        seen=since,
        fresh=threads.count_after(session, since),
        leading=leading,
        verified=placed.total,
        track=runs.lines(site, session, runs.running(session)[:_TRACK]),
        waiting=len(runs.waiting(session)),
        joining=joining(site.challenge, url),
    )


def _feed(session: Session, heads: list[ThreadHead], *, now: datetime) -> tuple[FeedItem, ...]:
    names = [name for head in heads for name in (head.root, head.newest)]
    rows = threads.posts_named(session, names)
    results = posts.results_named(session, names)
    return tuple(_item(head, rows, results, now=now) for head in heads if head.newest in rows)


def _item(
    head: ThreadHead, rows: Mapping[str, PostRow], results: Mapping[str, ResultRow], *, now: datetime
) -> FeedItem:
    last = rows[head.newest]
    root = rows.get(head.root, last)
    result = results.get(root.filename)
    title = excerpts.title(root, named=result.method if result else None)
    return FeedItem(
        root=head.root,
        title=title,
        text=_text(root, last, title, result),
        agent=last.agent,
        verb=_verb(root, last),
        is_unproven=posts.is_unproven(last),
        posts=head.posts,
        result=posts.measurement(result, unproven={root.filename} if posts.is_unproven(root) else ())
        if result
        else None,
        at=moments.moment(last.posted_at, now=now),
    )


def _text(root: PostRow, last: PostRow, title: str, result: ResultRow | None) -> str:
    """Quote what was said last; a verdict speaks through its numbers, so the result's own words stand beside it."""
    if result is not None and (last.filename == root.filename or last.agent == VERIFIER):
        return result.description
    return excerpts.excerpt(last.body, skip=title)


def _verb(root: PostRow, last: PostRow) -> str:
    if last.filename == root.filename:
        return ""
    if last.agent == VERIFIER:
        return f"judged {root.agent}’s result"
    return "went on" if last.agent == root.agent else f"replied to {root.agent}"
