"""Reading taskforces: which there are, newest activity first, who works in one, and what it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, func, select

from agents.directory import agent_ids
from board.attribution import level_of
from board.destinations import signers
from board.listing import Folder, ListQuery, Record, in_folder, page
from board.messages import to_record
from board.rows import PostRow, TaskforceFileRow, TaskforceRow
from board.taskforces import TaskforceNotFound, get_taskforce
from board.taskforces_index import FOLDER, README, folder_of
from storage.buckets import StoredFile
from storage.clock import to_iso_ms
from storage.paths import check_path
from storage.site import Site

RECENT_NOTES = 5
EXCERPT_CHARS = 280


class TaskforceFileNotFound(TaskforceNotFound):
    """The taskforce holds no such file."""

    code = "NOT_FOUND"


@dataclass(frozen=True)
class Found:
    """Taskforces found: `count` of all, `matched` by the search, the first of them, newest activity first."""

    count: int
    matched: int
    items: list[Record]


def find_taskforces(session: Session, *, q: str = "", limit: int = 0) -> Found:
    """List taskforces by their last activity; `limit` ≤ 0 means all."""
    rows = list(session.exec(select(TaskforceRow)))
    notes, files = _notes(session), _files(session)
    matching = [row for row in rows if q.casefold() in row.haystack]
    activity = {row.name: _last_activity(row, notes, files) for row in matching}
    ordered = sorted(matching, key=lambda row: (-activity[row.name].timestamp(), row.name))
    shown = ordered[:limit] if limit > 0 else ordered
    people = _contributors(session, shown)
    items = [
        _item(row, notes, files, people[row.name]) | {"last_activity": to_iso_ms(activity[row.name])} for row in shown
    ]
    return Found(len(rows), len(matching), items)


def describe(session: Session, name: str) -> Record:
    """Show one taskforce: its README as a record, who works in it, its latest notes.

    Raises:
        InvalidPath, TaskforceNotFound: there is none of that name.
    """
    row = get_taskforce(session, name)
    item = _item(row, _notes(session, name), _files(session, name), _contributors(session, [row])[row.name])
    recent = page(session, notes_of(session, name), ListQuery(limit=RECENT_NOTES), expand_limit=RECENT_NOTES)
    return {
        "name": row.name,
        "creator": row.creator,
        "created": row.created,
        "updated": row.updated,
        "readme": {
            "filename": README,
            "frontmatter": row.frontmatter,
            "body": row.body,
            "proof": level_of(row.frontmatter),
        },
        "contributors": item["contributors"],
        "file_count": item["file_count"],
        "note_count": item["note_count"],
        "recent_notes": [to_record(note) for note in recent.rows],
    }


def notes_of(session: Session, name: str) -> Folder:
    """The notes of a taskforce, for a listing.

    Raises:
        InvalidPath, TaskforceNotFound: there is none of that name.
    """
    return in_folder(folder_of(get_taskforce(session, name).name))


def files_of(session: Session, name: str) -> list[Record]:
    """List the named files of a taskforce by path; `size` is in bytes.

    Raises:
        InvalidPath, TaskforceNotFound: there is none of that name.
    """
    known = get_taskforce(session, name).name
    asked = select(TaskforceFileRow).where(TaskforceFileRow.taskforce == known).order_by(col(TaskforceFileRow.path))
    return [{"path": row.path, "size": row.size} for row in session.exec(asked)]


def find_file(site: Site, session: Session, name: str, path: str) -> StoredFile:
    """Return any file of a taskforce: its README, a note, or a named one.

    Raises:
        InvalidPath, TaskforceNotFound: there is no taskforce of that name.
        TaskforceFileNotFound: it holds no such file.
    """
    folder = folder_of(get_taskforce(session, name).name)
    stored = site.buckets(session).stat(site.central, f"{folder}/{check_path(path)}")
    if stored is None:
        raise TaskforceFileNotFound(f"The taskforce {name} holds no file {path!r:.100}.")
    return stored


@dataclass(frozen=True)
class _Some:
    """How many of something a taskforce has, and when the newest came."""

    count: int
    newest_at: datetime


def _notes(session: Session, name: str | None = None) -> dict[str, _Some]:
    asked = select(PostRow.folder, func.count(), func.max(PostRow.posted_at)).group_by(PostRow.folder)
    here = (
        col(PostRow.folder).startswith(f"{FOLDER}/", autoescape=True)
        if name is None
        else col(PostRow.folder) == folder_of(name)
    )
    found = session.exec(asked.where(here))
    return {folder.removeprefix(f"{FOLDER}/"): _Some(count, newest) for folder, count, newest in found}


def _files(session: Session, name: str | None = None) -> dict[str, _Some]:
    row = TaskforceFileRow
    asked = select(row.taskforce, func.count(), func.max(row.uploaded_at)).group_by(row.taskforce)
    found = session.exec(asked.where(row.taskforce == name) if name is not None else asked)
    return {taskforce: _Some(count, newest) for taskforce, count, newest in found}


def _last_activity(row: TaskforceRow, notes: dict[str, _Some], files: dict[str, _Some]) -> datetime:
    others = [some[row.name].newest_at for some in (notes, files) if row.name in some]
    return max([row.touched_at, *others])


def _item(row: TaskforceRow, notes: dict[str, _Some], files: dict[str, _Some], people: set[str]) -> Record:
    return {
        "name": row.name,
        "creator": row.creator,
        "created": row.created,
        "readme_excerpt": " ".join(row.body.split())[:EXCERPT_CHARS],
        "contributors": sorted(people),
        "file_count": files[row.name].count if row.name in files else 0,
        "note_count": notes[row.name].count if row.name in notes else 0,
    }


def _contributors(session: Session, rows: Sequence[TaskforceRow]) -> dict[str, set[str]]:
    """For each taskforce its creator, whoever wrote a note, and whoever's id a file carries."""
    found, agents = {row.name: {row.creator} for row in rows}, agent_ids(session)
    folders = [folder_of(name) for name in found]
    authors = select(PostRow.folder, PostRow.agent).where(col(PostRow.folder).in_(folders)).distinct()
    for folder, agent in session.exec(authors):
        found[folder.removeprefix(f"{FOLDER}/")].add(agent)
    files = select(TaskforceFileRow.taskforce, TaskforceFileRow.path).where(col(TaskforceFileRow.taskforce).in_(found))
    for taskforce, path in session.exec(files):
        found[taskforce] |= signers(path, agents)
    return found
