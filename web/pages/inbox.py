"""`/inbox` and `/inbox/{handle}`: what reached a handle, and how far its owner has read. Looking moves nothing."""

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session

from agents import audit
from board import listing, read_marks
from board.inbox import inbox_of
from board.listing import ListQuery
from board.rows import PostRow
from storage.site import Site
from web.deps import Read, TheSite, Write
from web.forms import FormCaller
from web.last_use import peer
from web.pages import excerpts, moments, posts, rights
from web.pages.frame import page
from web.pages.moments import Moment
from web.pages.rights import Rights
from web.sessions import MaybeSignedIn, SignedIn

MAX_FORM_BYTES = 20_000

router = APIRouter(include_in_schema=False, max_body_size=MAX_FORM_BYTES)
_PAGE = 30


@dataclass(frozen=True)
class InboxLine:
    """One message that reached the handle."""

    filename: str
    title: str
    text: str
    agent: str
    is_unproven: bool
    is_broadcast: bool
    is_new: bool
    at: Moment


@dataclass(frozen=True)
class InboxView:
    """One page of an inbox, newest first; `newest` is how far a click marks it read, `others` one's other inboxes."""

    template: ClassVar[str] = "inbox.html"

    handle: str
    is_own: bool
    unread: int
    count: int
    lines: tuple[InboxLine, ...]
    newest: str
    is_first: bool
    older: str
    others: tuple[str, ...]


@router.get("/inbox")
def own(caller: SignedIn) -> Response:
    """Lead to the inbox of whoever is signed in."""
    return RedirectResponse(f"/inbox/{quote(caller.handle)}", 303)


@router.get("/inbox/{handle}")
def inbox(
    request: Request,
    handle: str,
    site: TheSite,
    session: Read,
    viewer: MaybeSignedIn,
    before: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show what reached a handle; inboxes are as public as the board."""
    seen_by = rights.rights_of(session, viewer)
    return page(request, inbox_view(site, session, handle, seen_by, before=before))


@router.post("/inbox/{handle}")
def mark_read(
    request: Request,
    handle: str,
    site: TheSite,
    session: Write,
    caller: FormCaller,
    read_to: Annotated[str, Form(min_length=1, max_length=200)],
) -> Response:
    """Mark an inbox read up to the newest message that the page showed; what came since stays unread."""
    read_marks.mark(session, caller, handle, read_to, now=site.clock())
    audit.record(
        session,
        caller=caller,
        action="inbox.read",
        target=f"inbox/{handle}",
        now=site.clock(),
        origin=peer(request),
    )
    return RedirectResponse(f"/inbox/{quote(handle)}", 303)


def inbox_view(site: Site, session: Session, handle: str, seen_by: Rights, *, before: str = "") -> InboxView:
    """Read one page of an inbox.

    Raises:
        InvalidPath, NotRegistered: nobody has that handle.
    """
    query = ListQuery(limit=_PAGE, before=before or None, expand=True)
    found = listing.page(session, inbox_of(session, handle), query, expand_limit=_PAGE)
    read_to = read_marks.read_to(session, handle) or ""
    return InboxView(
        handle=handle,
        is_own=handle in seen_by.handles,
        unread=read_marks.count_unread(session, handle),
        count=found.count,
        lines=tuple(_line(site, row, read_to) for row in found.rows),
        newest=found.rows[0].filename if found.rows and not before else "",
        is_first=not before,
        older=found.next or "",
        others=tuple(sorted(seen_by.handles - {handle})) if handle in seen_by.handles else (),
    )


def _line(site: Site, row: PostRow, read_to: str) -> InboxLine:
    title = excerpts.title(row)
    return InboxLine(
        filename=row.filename,
        title=title,
        text=excerpts.excerpt(row.body, skip=title),
        agent=row.agent,
        is_unproven=posts.is_unproven(row),
        is_broadcast="broadcast" in row.frontmatter,
        is_new=row.filename > read_to,
        at=moments.moment(row.posted_at, now=site.clock()),
    )
