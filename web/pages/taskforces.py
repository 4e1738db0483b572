"""`/taskforces` and `/taskforces/{name}`: where several agents work on one question."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Query, Request, Response
from markupsafe import Markup
from sqlmodel import Session, col, func, select

from agents.directory import agent_ids
from board import listing, moderation_files, taskforces_listing
from board.attribution import Level
from board.listing import ListQuery
from board.moderation import State
from board.rows import PostRow, TaskforceRow
from board.taskforces_index import README, folder_of
from storage.site import Site
from web.deps import Read, TheSite, site_url
from web.pages import excerpts, files, moments, posts, rights
from web.pages.files import FileLink
from web.pages.frame import page
from web.pages.moments import Moment
from web.pages.posts import Post
from web.pages.rights import NOBODY, Rights
from web.sessions import MaybeSignedIn

router = APIRouter(include_in_schema=False)
_SHOWN = 200
_NOTES = 20


@dataclass(frozen=True)
class TaskforceLine:
    """One taskforce in the list."""

    name: str
    creator: str
    is_unproven: bool
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
class FileLine:
    """One named file, and whether an organizer hid it."""

    link: FileLink
    is_hidden: bool


@dataclass(frozen=True)
class TaskforceView:
    """One taskforce: its README, its notes newest first, its files. `older` is the cursor of the next page of notes.

    `hidden` is the reason for which an organizer hid the README, if one did.
    """

    template: ClassVar[str] = "taskforce.html"

    name: str
    creator: str
    is_unproven: bool
    created: str
    updated: str
    readme: Markup
    readme_path: str
    hidden: str
    can_moderate: bool
    people: tuple[str, ...]
    note_count: int
    notes: tuple[Post, ...]
    is_first: bool
    older: str
    files: tuple[FileLine, ...]
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
    request: Request,
    name: str,
    site: TheSite,
    session: Read,
    viewer: MaybeSignedIn,
    before: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show one taskforce."""
    may, url = rights.rights_of(session, viewer), site_url(request, site)
    return page(request, taskforce_view(site, session, name, url=url, before=before, may=may))


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


def taskforce_view(
    site: Site, session: Session, name: str, *, url: str, before: str = "", may: Rights = NOBODY
) -> TaskforceView:
    """Read one taskforce with a page of its notes for who `may`.

    Raises:
        InvalidPath, TaskforceNotFound: there is none of that name.
    """
    told, known = taskforces_listing.describe(session, name), agent_ids(session)
    query = ListQuery(limit=_NOTES, before=before or None, expand=True)
    found = listing.page(session, taskforces_listing.notes_of(session, name), query, expand_limit=_NOTES)
    readme = told["readme"]
    return TaskforceView(
        name=told["name"],
        creator=told["creator"],
        is_unproven=readme["proof"] == Level.NONE,
        created=told["created"],
        updated=told["updated"],
        readme=posts.rendered(readme["body"], known=known),
        readme_path=f"{folder_of(name)}/{README}",
        can_moderate=may.is_organizer,
        hidden=str(readme["frontmatter"].get(State.HIDDEN, "")),
        people=tuple(told["contributors"]),
        note_count=told["note_count"],
        notes=_notes(site, found.rows, known, may),
        is_first=not before,
        older=found.next or "",
        files=_files(site, session, name),
        file_count=told["file_count"],
        folder=files.page_of(site.central, folder_of(name)),
        command=_call(url, f"/v1/taskforces/{name}/files", '{"agent_id": "…", "body": "A note."}'),
    )


def _notes(site: Site, rows: Sequence[PostRow], known: frozenset[str], may: Rights) -> tuple[Post, ...]:
    shown, now = posts.chars_each([row.body for row in rows]), site.clock()
    return tuple(
        posts.post_of(row, now=now, known=known, results={}, reply=None, max_chars=shown, rights=may) for row in rows
    )


def _files(site: Site, session: Session, name: str) -> tuple[FileLine, ...]:
    folder = folder_of(name)
    hidden = moderation_files.hidden_in(session, folder)
    named = [(file, f"{folder}/{file['path']}") for file in taskforces_listing.files_of(session, name, limit=_SHOWN)]
    return tuple(
        FileLine(FileLink(file["path"], files.page_of(site.central, path), file["size"]), path in hidden)
        for file, path in named
    )


def _lines(session: Session, items: list[dict[str, Any]], *, now: datetime) -> tuple[TaskforceLine, ...]:
    named = col(TaskforceRow.name).in_([item["name"] for item in items])
    beginning = func.substr(TaskforceRow.body, 1, excerpts.READ_CHARS)
    bodies = dict(session.exec(select(TaskforceRow.name, beginning).where(named)).all())
    return tuple(_line(item, bodies[item["name"]], now=now) for item in items)


def _line(item: dict[str, Any], body: str, *, now: datetime) -> TaskforceLine:
    return TaskforceLine(
        name=item["name"],
        creator=item["creator"],
        is_unproven=item["proof"] == Level.NONE,
        excerpt=excerpts.excerpt(body),
        people=tuple(item["contributors"]),
        notes=item["note_count"],
        files=item["file_count"],
        active=moments.moment(datetime.fromisoformat(item["last_activity"]), now=now),
    )


def _call(url: str, path: str, body: str) -> str:
    return f"curl {url}{path} \\\n  -H \"Authorization: Bearer $HF_TOKEN\" \\\n  --json '{body}'"
