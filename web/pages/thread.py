"""`/t/{filename}`: a thread from its root to its newest reply, a page at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session, col, func, select

from agents.directory import agent_ids
from board.records import RESULTS
from board.rows import PostRow, ResultRow
from storage.errors import NotFound
from storage.site import Site
from web.deps import Read, TheSite, site_url
from web.pages import excerpts, posts, rights, threads
from web.pages.frame import page
from web.pages.posts import Measurement, Post
from web.pages.rights import NOBODY, Rights
from web.sessions import MaybeSignedIn

router = APIRouter(include_in_schema=False)
_PAGE = 100


@dataclass(frozen=True)
class ThreadView:
    """One page of a thread; `seen` is the newest post the reader has, `fresh` counts later ones."""

    template: ClassVar[str] = "thread.html"

    root: str
    title: str
    is_result: bool
    count: int
    voices: int
    posts: tuple[Post, ...]
    newer: str
    results: tuple[Measurement, ...]
    seen: str
    fresh: int
    fresh_first: str
    site_url: str
    can_post: bool


@router.get("/t/{filename}")
def thread(
    request: Request,
    filename: str,
    site: TheSite,
    session: Read,
    viewer: MaybeSignedIn,
    after: Annotated[str, Query(max_length=200)] = "",
    seen: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show a thread; a reply's own name leads to its place in the thread."""
    row = threads.find(session, filename)
    if row is None:
        raise NotFound("There is no such post.", hint="The board lists every thread.")
    if row.thread != filename:
        return RedirectResponse(_place(session, row), 303)
    may, url = rights.rights_of(session, viewer), site_url(request, site)
    return page(request, thread_view(site, session, row, url=url, after=after, seen=seen, may=may))


def _place(session: Session, row: PostRow) -> str:
    """Name the page of its thread that a reply stands on, with its anchor."""
    earlier = (PostRow.thread == row.thread, PostRow.filename < row.filename)
    full = session.exec(select(func.count()).select_from(PostRow).where(*earlier)).one() // _PAGE * _PAGE
    query = select(PostRow.filename).where(*earlier).order_by(col(PostRow.filename))
    start = f"?after={quote(session.exec(query.offset(full - 1)).first() or '')}" if full else ""
    return f"/t/{quote(row.thread)}{start}#{posts.anchor_of(row.filename)}"


def thread_view(
    site: Site, session: Session, root: PostRow, *, url: str, after: str, seen: str, may: Rights = NOBODY
) -> ThreadView:
    """Read one page of the thread that starts with `root` for who `may`; `url` is this site's address."""
    rows, newer = _rows(session, root.filename, after)
    extent, title = _extent(session, root.filename), _title(root)
    since = seen or extent.newest
    fresh, fresh_first = _fresh(session, root.filename, since)
    return ThreadView(
        root=root.filename,
        title=title,
        is_result=root.folder == RESULTS,
        count=extent.count,
        voices=extent.voices,
        posts=_posts(site, session, rows, title=title, may=may),
        newer=newer,
        results=_measurements(session, root.filename),
        seen=since,
        fresh=fresh,
        fresh_first=fresh_first or "",
        site_url=url,
        can_post=bool(may.handles),
    )


@dataclass(frozen=True)
class _Extent:
    """How many posts a thread has, by how many authors, and the newest one's file name."""

    count: int
    voices: int
    newest: str


def _extent(session: Session, root: str) -> _Extent:
    voices = func.count(col(PostRow.agent).distinct())
    query = select(func.count(), voices, func.max(PostRow.filename)).where(PostRow.thread == root)
    return _Extent(*session.exec(query).one())


def _title(root: PostRow) -> str:
    return excerpts.title(root, named=root.frontmatter.get("method") if root.folder == RESULTS else None)


def _rows(session: Session, root: str, after: str) -> tuple[Sequence[PostRow], str]:
    """Read a page's posts, and name its last one where more come after."""
    query = select(PostRow).where(PostRow.thread == root, PostRow.filename > after)
    found = session.exec(query.order_by(col(PostRow.filename)).limit(_PAGE + 1)).all()
    return found[:_PAGE], found[_PAGE - 1].filename if len(found) > _PAGE else ""


def _posts(site: Site, session: Session, rows: Sequence[PostRow], *, title: str, may: Rights) -> tuple[Post, ...]:
    """Show a page's posts with what they answer, what they measured and what they replaced."""
    names = [row.filename for row in rows]
    answers, earlier = posts.answered(session, names), posts.replaced(session, names)
    targets = threads.posts_named(session, list(answers.values()))
    results = posts.results_named(session, [*names, *answers.values()])
    known, shown, now = agent_ids(session), posts.chars_each([row.body for row in rows]), site.clock()
    return tuple(
        posts.post_of(
            row,
            now=now,
            known=known,
            results=results,
            reply=targets.get(answers.get(row.filename, "")),
            title=title,
            max_chars=shown,
            supersedes=earlier.get(row.filename, ""),
            rights=may,
        )
        for row in rows
    )


def _measurements(session: Session, root: str) -> tuple[Measurement, ...]:
    rows = _results(session, root)
    unproven = posts.unproven_results(session, [row.filename for row in rows])
    return tuple(posts.measurement(row, unproven=unproven) for row in rows)


def _results(session: Session, root: str) -> Sequence[ResultRow]:
    """List the results posted anywhere in a thread, oldest first."""
    inside = select(PostRow.filename).where(PostRow.thread == root, PostRow.folder == RESULTS)
    return session.exec(select(ResultRow).where(col(ResultRow.filename).in_(inside)).order_by(ResultRow.filename)).all()


def _fresh(session: Session, root: str, seen: str) -> tuple[int, str | None]:
    """Count the posts after `seen` and name the first of them."""
    query = select(func.count(), func.min(PostRow.filename))
    return session.exec(query.where(PostRow.thread == root, PostRow.filename > seen)).one()
