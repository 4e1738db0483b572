"""Reading taskforces: which there are, newest activity first, who works in one, and what it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, union_all
from sqlalchemy import select as select_many
from sqlmodel import Session, col, func, select

from agents.directory import agent_ids
from board.attribution import level_of
from board.destinations import signers
from board.listing import Folder, ListQuery, Record, in_folder, page, says
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
_READ_CHARS = 4000
"""How far into a README its excerpt is looked for."""
_AT_ONCE = 500


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
    """List taskforces by their last activity; `limit` ≤ 0 means all. Of each README only the beginning is read."""
    here = [says(col(TaskforceRow.haystack), q)] if q else []
    shown = _newest(session, here, limit if limit > 0 else None)
    names = [one.name for one in shown]
    notes, files, people = _notes(session, names), _files(session, names), _contributors(session, shown)
    items = [
        _item(one, notes, files, people[one.name])
        | {"last_activity": to_iso_ms(one.active_at), "proof": level_of(one.frontmatter)}
        for one in shown
    ]
    return Found(_count(session, []), _count(session, here), items)


def describe(session: Session, name: str) -> Record:
    """Show one taskforce: its README as a record, who works in it, its latest notes.

    Raises:
        InvalidPath, TaskforceNotFound: there is none of that name.
    """
    row = get_taskforce(session, name)
    one = _Head(row.name, row.creator, row.created, row.body, row.frontmatter, row.touched_at)
    item = _item(one, _notes(session, [name]), _files(session, [name]), _contributors(session, [one])[name])
    query = ListQuery(limit=RECENT_NOTES, expand=True)
    recent = page(session, notes_of(session, name), query, expand_limit=RECENT_NOTES)
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


def files_of(session: Session, name: str, *, limit: int | None = None) -> list[Record]:
    """List the named files of a taskforce by path, the first `limit` or all; `size` is in bytes.

    Raises:
        InvalidPath, TaskforceNotFound: there is none of that name.
    """
    known = get_taskforce(session, name).name
    asked = select(TaskforceFileRow).where(TaskforceFileRow.taskforce == known).order_by(col(TaskforceFileRow.path))
    return [{"path": row.path, "size": row.size} for row in session.exec(asked.limit(limit))]


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
class _Head:
    """A taskforce in a list: the beginning of its README's body, and when something last moved there."""

    name: str
    creator: str
    created: str
    beginning: str
    frontmatter: dict[str, object]
    active_at: datetime


@dataclass(frozen=True)
class _Named:
    """How many of something each taskforce has; those without any are missing."""

    counts: dict[str, int]

    def of(self, name: str) -> int:
        """Say how many one taskforce has."""
        return self.counts.get(name, 0)


def _newest(session: Session, here: Sequence[ColumnElement[bool]], limit: int | None) -> list[_Head]:
    moments = union_all(
        select(col(TaskforceRow.name).label("name"), col(TaskforceRow.touched_at).label("at")),
        select(func.substr(PostRow.folder, len(FOLDER) + 2), col(PostRow.posted_at)).where(_is_note()),
        select(col(TaskforceFileRow.taskforce), col(TaskforceFileRow.uploaded_at)),
    ).subquery()
    row, last = TaskforceRow, func.max(moments.c.at)
    beginning = func.substr(row.body, 1, _READ_CHARS)
    name = col(row.name)
    asked = select_many(name, col(row.creator), col(row.created), beginning, col(row.frontmatter), last).where(*here)
    joined = asked.join(moments, moments.c.name == name).group_by(name).order_by(last.desc(), name)
    return [_Head(*found) for found in session.execute(joined.limit(limit))]


def _count(session: Session, here: Sequence[ColumnElement[bool]]) -> int:
    return session.exec(select(func.count()).select_from(TaskforceRow).where(*here)).one()


def _is_note() -> ColumnElement[bool]:
    """Below `taskforces/`: as a range, because no index serves a LIKE."""
    return col(PostRow.folder).between(f"{FOLDER}/", f"{FOLDER}0")  # 0 comes after /


def _notes(session: Session, names: Sequence[str]) -> _Named:
    here = col(PostRow.folder).in_([folder_of(name) for name in names])
    found = session.exec(select(PostRow.folder, func.count()).where(here).group_by(PostRow.folder))
    return _Named({folder.removeprefix(f"{FOLDER}/"): count for folder, count in found})


def _files(session: Session, names: Sequence[str]) -> _Named:
    row = TaskforceFileRow
    asked = select(row.taskforce, func.count()).where(col(row.taskforce).in_(names)).group_by(row.taskforce)
    return _Named(dict(session.exec(asked).all()))


def _item(one: _Head, notes: _Named, files: _Named, people: set[str]) -> Record:
    return {
        "name": one.name,
        "creator": one.creator,
        "created": one.created,
        "readme_excerpt": " ".join(one.beginning.split())[:EXCERPT_CHARS],
        "contributors": sorted(people),
        "file_count": files.of(one.name),
        "note_count": notes.of(one.name),
    }


def _contributors(session: Session, shown: Sequence[_Head]) -> dict[str, set[str]]:
    """For each taskforce its creator, whoever wrote a note, and whoever's id a file carries."""
    found, agents = {one.name: {one.creator} for one in shown}, agent_ids(session)
    folders = [folder_of(name) for name in found]
    authors = select(PostRow.folder, PostRow.agent).where(col(PostRow.folder).in_(folders)).distinct()
    for folder, agent in session.exec(authors):
        found[folder.removeprefix(f"{FOLDER}/")].add(agent)
    files = select(TaskforceFileRow.taskforce, TaskforceFileRow.path).where(col(TaskforceFileRow.taskforce).in_(found))
    for taskforce, path in session.exec(files.execution_options(yield_per=_AT_ONCE)):
        found[taskforce] |= signers(path, agents)
    return found
