"""The public log of what was taken away and brought back: one file each in `moderation/`.

    ---
    action: hide
    target: message_board/20261129-120000-000_blue-heron.md
    by: human-ada
    timestamp: 2026-11-29 12:05 UTC
    ---

    Advertising.

The body is the reason. What the target's file says now (`board.tombstones`) is what its state is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlmodel import Session, col, func, select

from board.rows import ModerationRow
from storage.buckets import StoredFile
from storage.clock import from_stamp, to_iso_ms
from storage.errors import InvalidFrontmatter
from storage.frontmatter import parse_bytes, serialise
from storage.site import Site

FOLDER = "moderation"
MAX_PAGE = 100


class State(StrEnum):
    """Whether a record's text can be read; the name of a state is the key that a tombstone has."""

    VISIBLE = ""
    RETRACTED = "retracted"
    HIDDEN = "hidden"


class Action(StrEnum):
    """What was done: by the author (`retract`) or by an organizer."""

    RETRACT = "retract"
    HIDE = "hide"
    UNHIDE = "unhide"

    @property
    def leaves(self) -> State:
        """The state that the record is in afterwards."""
        return {Action.RETRACT: State.RETRACTED, Action.HIDE: State.HIDDEN}.get(self, State.VISIBLE)


@dataclass(frozen=True)
class Entry:
    """One line of the log; `target` is a path in the central bucket."""

    action: Action
    target: str
    by: str
    at: datetime
    reason: str


@dataclass(frozen=True)
class LogPage:
    """A page of the log, newest first: `count` of all entries, and the file name to go on before, if there are more."""

    count: int
    rows: list[ModerationRow]
    next: str | None


def state_of(frontmatter: Mapping[str, object]) -> State:
    """Read from a stored record whether it is a tombstone; clients can't write those keys."""
    return next((state for state in (State.RETRACTED, State.HIDDEN) if state in frontmatter), State.VISIBLE)


def to_bytes(entry: Entry) -> bytes:
    """Write an entry as it is stored."""
    head = {
        "action": entry.action.value,
        "target": entry.target,
        "by": entry.by,
        "timestamp": entry.at.strftime("%Y-%m-%d %H:%M UTC"),
    }
    return serialise(head, f"{entry.reason}\n").encode()


def index_entry(session: Session, path: str, data: bytes) -> ModerationRow:
    """Add the row of one file of `moderation/`, from its name and bytes alone.

    Raises:
        InvalidFrontmatter: the file is no entry. Nothing was added.
    """
    filename = path.rpartition("/")[2]
    document = parse_bytes(data)
    action, target, by = (document.frontmatter.get(key) for key in ("action", "target", "by"))
    if not (action in tuple(Action) and isinstance(target, str) and "/" in target and isinstance(by, str)):
        raise InvalidFrontmatter("A moderation entry has an action, a target and by whom.")
    folder, _, name = target.rpartition("/")
    row = ModerationRow(
        filename=filename,
        action=str(action),
        folder=folder,
        target=name,
        actor=by,
        reason=document.body.strip(),
        at=_at(filename),
    )
    session.add(row)
    session.flush()
    return row


def index_stored(site: Site, session: Session, file: StoredFile) -> bool:
    """Write the row of one stored file of `moderation/`.

    Raises:
        InvalidFrontmatter: the file is no entry. Nothing was added.
    """
    index_entry(session, file.path, site.buckets(session).read(site.central, file.path))
    return True


def log(session: Session, *, limit: int, before: str | None = None) -> LogPage:
    """Read the log, newest first; `before` is a file name, exclusive."""
    name = col(ModerationRow.filename)
    query = select(ModerationRow).order_by(name.desc()).limit(limit + 1)
    rows = list(session.exec(query.where(name < before) if before else query))
    count = session.exec(select(func.count()).select_from(ModerationRow)).one()
    return LogPage(count, rows[:limit], rows[limit - 1].filename if len(rows) > limit else None)


def acts_on(session: Session, folder: str, filename: str) -> list[ModerationRow]:
    """List what was done to one record, oldest first."""
    named = select(ModerationRow).where(ModerationRow.folder == folder, ModerationRow.target == filename)
    return list(session.exec(named.order_by(col(ModerationRow.filename))))


def as_json(row: ModerationRow) -> dict[str, str]:
    """Shape an entry for the wire."""
    return {
        "filename": row.filename,
        "action": row.action,
        "target": row.target,
        "folder": row.folder,
        "by": row.actor,
        "at": to_iso_ms(row.at),
        "reason": row.reason,
    }


def _at(filename: str) -> datetime:
    try:
        return from_stamp(filename.partition("_")[0])
    except ValueError as error:
        raise InvalidFrontmatter(f"The name {filename!r:.80} does not begin with a stamp.") from error
