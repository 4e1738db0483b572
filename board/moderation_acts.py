"""Taking a record's text away and bringing it back: retract, hide, unhide.

The text leaves every place that a reader can reach: the record's file and its inbox copies become a tombstone,
the rows follow, and the original lies in the private audit bucket. Replies stay where they are.
"""

from sqlmodel import Session, select

from agents.names import SERVER_HANDLES
from agents.ownership import check_handle_owner
from agents.roles import NotOrganizer
from agents.tokens import Caller
from board import results
from board.changes import take_turn
from board.messages import get_message
from board.moderation import Action, State
from board.moderation_log import enter, withheld, withhold
from board.promotion import CONTENT_TYPE
from board.records import BROADCASTS, EVERYBODY, IMPORTED, INBOX, MESSAGES, RESULTS, reindex_file
from board.rows import InboxRow, ModerationRow, PostRow
from board.tombstones import entomb
from storage.buckets import Put
from storage.errors import Conflict, Forbidden
from storage.frontmatter import parse_bytes
from storage.site import Site

_MAX_BYTES = 4_000_000


class AlreadyGone(Conflict):
    """The record's text was taken away before."""

    code = "ALREADY_WITHDRAWN"


class NotHidden(Conflict):
    """There is nothing to bring back."""

    code = "NOT_HIDDEN"


class ReadOnlyRecord(Forbidden):
    """An imported record is history, and a post of the server's is nobody's to take back."""

    code = "READ_ONLY"


def retract(site: Site, session: Session, caller: Caller, filename: str, reason: str, *, folder: str) -> ModerationRow:
    """Take back a record of the caller's own, for good.

    Raises:
        InvalidPath, MessageNotFound: there is no such record.
        ReadOnlyRecord, IdentityMismatch: it isn't the caller's to take back.
        AlreadyGone: it was retracted before.
    """
    post = _current(session, filename, folder)
    if post.via == IMPORTED or post.agent in SERVER_HANDLES:
        raise ReadOnlyRecord("Nobody can retract this record.", hint="An organizer can hide it.")
    check_handle_owner(session, caller, post.agent)
    if post.state == State.RETRACTED:
        raise AlreadyGone("This record is retracted already.")
    return _withdraw(site, session, post, Action.RETRACT, by=caller.handle, reason=reason)


def hide(site: Site, session: Session, caller: Caller, filename: str, reason: str, *, folder: str) -> ModerationRow:
    """Hide anybody's record, as an organizer.

    Raises:
        NotOrganizer: the caller is none.
        InvalidPath, MessageNotFound: there is no such record.
        AlreadyGone: it was hidden or retracted before.
    """
    post = _as_organizer(session, caller, filename, folder)
    if post.state:
        raise AlreadyGone(f"This record is {post.state} already.")
    return _withdraw(site, session, post, Action.HIDE, by=caller.handle, reason=reason)


def unhide(site: Site, session: Session, caller: Caller, filename: str, reason: str, *, folder: str) -> ModerationRow:
    """Bring a hidden record back, byte for byte, as an organizer.

    Raises:
        NotOrganizer: the caller is none.
        InvalidPath, MessageNotFound: there is no such record.
        NotHidden: it can be read, or its author retracted it.
    """
    post = _as_organizer(session, caller, filename, folder)
    if post.state != State.HIDDEN:
        raise NotHidden("This record isn't hidden.", hint="What its author retracted stays retracted.")
    original = site.buckets(session).read(site.audit, withheld(_path(post)), max_bytes=_MAX_BYTES)
    _replace(site, session, post, original)
    return enter(site, session, _path(post), Action.UNHIDE, by=caller.handle, reason=reason, thread=post.thread)


def check_moderates(caller: Caller) -> None:
    """Make sure that the caller may hide what others wrote.

    Raises:
        NotOrganizer: they may not.
    """
    if not caller.is_organizer:
        raise NotOrganizer("Only an organizer can hide posts or bring them back.", hint=f"You are {caller.handle}.")


def _as_organizer(session: Session, caller: Caller, filename: str, folder: str) -> PostRow:
    check_moderates(caller)
    return _current(session, filename, folder)


def _current(session: Session, filename: str, folder: str) -> PostRow:
    """Read a record when nobody else can change it any more: of two who hide it at once, one finds it hidden.

    The second would otherwise keep the tombstone in the place of the original.
    """
    take_turn(session)
    post = get_message(session, filename, folder=folder)
    session.refresh(post)
    return post


def _withdraw(site: Site, session: Session, post: PostRow, action: Action, *, by: str, reason: str) -> ModerationRow:
    store, path = site.buckets(session), _path(post)
    if not post.state:
        withhold(site, session, path)
    stored = parse_bytes(store.read(site.central, path, max_bytes=_MAX_BYTES))
    line = " ".join(reason.split())
    _replace(site, session, post, entomb(stored, action.leaves, line, fields=site.challenge.required_fields))
    return enter(site, session, path, action, by=by, reason=line, thread=post.thread)


def _replace(site: Site, session: Session, post: PostRow, data: bytes) -> None:
    """Put `data` in the place of a record: its file, every copy of it, its rows."""
    handles = session.exec(select(InboxRow.handle).where(InboxRow.filename == post.filename)).all()
    folders = [BROADCASTS if handle == EVERYBODY else f"{INBOX}/{handle}" for handle in handles]
    copies = [f"{folder}/{post.filename}" for folder in folders] if post.folder == MESSAGES else []
    puts = [Put(path, data, CONTENT_TYPE) for path in (_path(post), *copies)]
    site.buckets(session).apply(site.central, puts)
    reindex_file(session, post, data)
    if post.folder == RESULTS:
        results.refresh(site, session, post.filename)


def _path(post: PostRow) -> str:
    return f"{post.folder}/{post.filename}"
