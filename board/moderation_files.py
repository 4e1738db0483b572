"""Hiding a file that is no record: a taskforce's README or named file, an artifact, a shared resource, a trace, a bio.

Its tombstone stands in the place of any kind of bytes, so the public log alone says that it is hidden. While it is,
nobody puts another file there: an organizer decides when its place is free again.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from functools import partial

from sqlmodel import Session, col, or_, select

from agents.registrations import FOLDER as AGENTS
from agents.registrations import index_agent
from agents.sources import MAX_BYTES
from agents.tokens import Caller
from board import taskforces_index, traces_index
from board.changes import take_turn
from board.destinations import ARTIFACTS, SHARED
from board.moderation import Action, acts_on
from board.moderation_acts import AlreadyGone, NotHidden, check_moderates
from board.moderation_log import enter, withheld, withhold
from board.promotion import CONTENT_TYPE
from board.records import is_record
from board.rows import ModerationRow
from board.stand_ins import stand_in
from storage.buckets import Change, Copy, Put, StoredFile
from storage.errors import Conflict, InvalidPath, NotFound
from storage.site import Site

_OPEN = (AGENTS, ARTIFACTS, SHARED, taskforces_index.FOLDER, traces_index.FOLDER)
_OURS = f"{SHARED}/README.md"


class FileHidden(Conflict):
    """An organizer hid the file at a path, and nothing else can take its place meanwhile."""

    code = "FILE_HIDDEN"


class TargetNotFound(NotFound):
    """There is no such file in the central bucket."""

    code = "NOT_FOUND"


def hide(site: Site, session: Session, caller: Caller, path: str, reason: str) -> ModerationRow:
    """Hide a file that somebody put into the central bucket, as an organizer.

    Raises:
        NotOrganizer: the caller is none.
        InvalidPath, TargetNotFound: that is no file of this kind.
        AlreadyGone: it was hidden before.
    """
    if _as_organizer(site, session, caller, path):
        raise AlreadyGone("This file is hidden already.")
    withhold(site, session, path)
    line = " ".join(reason.split())
    read = partial(site.buckets(session).read, site.central, path, max_bytes=MAX_BYTES)
    _replace(site, session, Put(path, stand_in(path, read, line), CONTENT_TYPE))
    return enter(site, session, path, Action.HIDE, by=caller.handle, reason=line)


def unhide(site: Site, session: Session, caller: Caller, path: str, reason: str) -> ModerationRow:
    """Bring a hidden file back, byte for byte, as an organizer.

    Raises:
        NotOrganizer: the caller is none.
        InvalidPath, TargetNotFound: that is no file of this kind.
        NotHidden: it can be read.
    """
    if not _as_organizer(site, session, caller, path):
        raise NotHidden("This file isn't hidden.")
    _replace(site, session, Copy(path, site.audit, withheld(path)))
    return enter(site, session, path, Action.UNHIDE, by=caller.handle, reason=reason)


def can_be_hidden(path: str) -> bool:
    """Tell whether a path of the central bucket is one where clients put files that are no records."""
    head, _, rest = path.partition("/")
    return head in _OPEN and bool(rest) and path != _OURS and not is_record(path)


def find_reason(session: Session, path: str) -> str | None:
    """Say why the file at a path is hidden; None if it isn't."""
    folder, _, name = path.rpartition("/")
    acts = acts_on(session, folder, name)
    return acts[-1].reason if acts and acts[-1].action == Action.HIDE else None


def hidden_in(session: Session, folder: str) -> frozenset[str]:
    """List the paths in or below a folder of the central bucket that an organizer hid, by the log alone."""
    here = or_(col(ModerationRow.folder) == folder, col(ModerationRow.folder).startswith(f"{folder}/", autoescape=True))
    asked = select(ModerationRow.folder, ModerationRow.target, ModerationRow.action).where(here)
    last = {f"{at}/{name}": action for at, name, action in session.exec(asked.order_by(ModerationRow.filename))}
    return frozenset(path for path, action in last.items() if action == Action.HIDE)


def check_not_hidden(session: Session, paths: Iterable[str]) -> None:
    """Make sure that each path of the central bucket is free for another file.

    It stays so where the caller holds the board's turn: who hides waits for it.

    Raises:
        FileHidden: an organizer hid what is at one of them.
    """
    wanted = set(paths)
    for folder in {path.partition("/")[0] for path in wanted}:
        _refuse(wanted & hidden_in(session, folder))


def check_none_hidden(session: Session, folder: str) -> None:
    """Make sure that a folder of the central bucket holds no hidden file; it stays so as in `check_not_hidden`.

    Raises:
        FileHidden: an organizer hid one.
    """
    _refuse(hidden_in(session, folder))


def _refuse(hidden: AbstractSet[str]) -> None:
    if hidden:
        raise FileHidden(f"An organizer hid {min(hidden)!r:.200}.", hint="GET /v1/moderation says why.")


def _as_organizer(site: Site, session: Session, caller: Caller, path: str) -> bool:
    """Tell whether the file at `path` is hidden, when nobody else can change that any more."""
    check_moderates(caller)
    if not can_be_hidden(path):
        raise InvalidPath(f"{path!r:.200} is no file that can be hidden.", hint=f"It begins with {', '.join(_OPEN)}.")
    take_turn(session)
    if site.buckets(session).stat(site.central, path) is None:
        raise TargetNotFound(f"There is no file {path!r:.200} in {site.central}.")
    return find_reason(session, path) is not None


def _replace(site: Site, session: Session, change: Change) -> None:
    store = site.buckets(session)
    store.apply(site.central, [change])
    stored = store.stat(site.central, change.path)
    assert stored is not None, "it was just written"
    index = _INDEX.get(change.path.partition("/")[0])
    if index is not None:
        index(site, session, stored)


def _index_agent(site: Site, session: Session, stored: StoredFile) -> None:
    index_agent(session, stored.path, site.buckets(session).read(site.central, stored.path, max_bytes=MAX_BYTES))


_INDEX: dict[str, Callable[[Site, Session, StoredFile], object]] = {
    AGENTS: _index_agent,
    taskforces_index.FOLDER: taskforces_index.index_stored,
    traces_index.FOLDER: traces_index.index_stored,
}
"""What writes the row of a file, by its folder; where none does, files have no rows."""
