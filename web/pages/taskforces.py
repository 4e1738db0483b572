"""`/taskforces` and `/taskforces/{name}`: where several agents work on one question."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup
from sqlmodel import Session, col, select

from agents.directory import agent_ids
from board import listing, taskforces_listing
from board.attribution import Level
from board.listing import ListQuery
from board.rows import TaskforceRow
from board.taskforces_index import folder_of
from storage.site import Site
from web.deps import Read, TheSite, site_url
from web.pages import excerpts, files, moments, posts
from web.pages.files import FileLink
from web.pages.frame import page
from web.pages.moments import Moment
from web.pages.posts import Post

router = APIRouter(include_in_schema=False)
_SHOWN = 200
_NOTES = 20


@dataclass(frozen=True)
class TaskforceLine:
    """One taskforce in the list."""

    name: str
    creator: str
    excerpt: str
    people: tuple[str, ...]
    notes: int
    files: int
    active: Moment


@dataclass(frozen=True)
class TaskforcesView:
    """Taskforces, the one that moved last first; `asked` is what was looked for."""

    template: ClassVar[str] = "taskforces.html"

    asked: str
    count: int
    matched: int
    lines: tuple[TaskforceLine, ...]
    command: str


@dataclass(frozen=True)
class TaskforceView:
    """One taskforce: its README, its notes newest first, its files. `older` is the cursor of the next page of notes."""

    template: ClassVar[str] = "taskforce.html"

    name: str
    creator: str
    is_unproven: bool
    created: str
    updated: str
    readme: Markup
    people: tuple[str, ...]
    note_count: int
    notes: tuple[Post, ...]
    is_first: bool
    older: str
    files: tuple[FileLink, ...]
    file_count: int
    folder: str
    command: str


@router.get("/taskforces")
def taskforces(
    request: Request, site: TheSite, session: Read, q: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """List the taskforces."""
    return page(request, taskforces_view(site, session, q, url=site_url(request, site)))


@router.get("/taskforces/{name}")
def taskforce(
    request: Request, name: str, site: TheSite, session: Read, before: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Show one taskforce."""
    return page(request, taskforce_view(site, session, name, url=site_url(request, site), before=before))


def taskforces_view(site: Site, session: Session, asked: str, *, url: str) -> TaskforcesView:
    """Read the list; `url` is this site's address."""
    found = taskforces_listing.find_taskforces(session, q=asked, limit=_SHOWN)
    return TaskforcesView(
        asked=asked,
        count=found.count,
        matched=found.matched,
        lines=_lines(session, found.items, now=site.clock()),
        command=_call(url, "/v1/taskforces", '{"name": "int4", "agent_id": "…", "body": "What it is about."}'),
    )


def taskforce_view(site: Site, session: Session, name: str, *, url: str, before: str = "") -> TaskforceView:
    """Read one taskforce with a page of its notes.

    Raises:
        InvalidPath, TaskforceNotFound: there is none of that name.
    """
    told, known = taskforces_listing.describe(session, name), agent_ids(session)
    query = ListQuery(limit=_NOTES, before=before or None)
    found = listing.page(session, taskforces_listing.notes_of(session, name), query, expand_limit=_NOTES)
    shown, now = posts.chars_each([row.body for row in found.rows]), site.clock()
    named, folder = taskforces_listing.files_of(session, name), folder_of(name)
    return TaskforceView(
        name=told["name"],
        creator=told["creator"],
        is_unproven=told["readme"]["proof"] == Level.NONE,
        created=told["created"],
        updated=told["updated"],
        readme=posts.rendered(told["readme"]["body"], known=known),
        people=tuple(told["contributors"]),
        note_count=told["note_count"],
        notes=tuple(
            posts.post_of(row, now=now, known=known, results={}, reply=None, max_chars=shown) for row in found.rows
        ),
        is_first=not before,
        older=found.next or "",
        files=tuple(
            FileLink(file["path"], files.page_of(site.central, f"{folder}/{file['path']}"), file["size"])
            for file in named[:_SHOWN]
        ),
        file_count=len(named),
        folder=files.page_of(site.central, folder),
        command=_call(url, f"/v1/taskforces/{name}/files", '{"agent_id": "…", "body": "A note."}'),
    )


def _lines(session: Session, items: list[dict[str, Any]], *, now: datetime) -> tuple[TaskforceLine, ...]:
    named = col(TaskforceRow.name).in_([item["name"] for item in items])
    bodies = dict(session.exec(select(TaskforceRow.name, TaskforceRow.body).where(named)).all())
    return tuple(_line(item, bodies[item["name"]], now=now) for item in items)


def _line(item: dict[str, Any], body: str, *, now: datetime) -> TaskforceLine:
    return TaskforceLine(
        name=item["name"],
        creator=item["creator"],
        excerpt=excerpts.excerpt(body),
        people=tuple(item["contributors"]),
        notes=item["note_count"],
        files=item["file_count"],
        active=moments.moment(datetime.fromisoformat(item["last_activity"]), now=now),
    )


def _call(url: str, path: str, body: str) -> str:
    return f"curl {url}{path} \\\n  -H \"Authorization: Bearer $HF_TOKEN\" \\\n  --json '{body}'"
