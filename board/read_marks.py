"""How far somebody has read their inbox. Only its owner's explicit word moves a mark, never a reading."""

from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, delete, func, select

from agents.ownership import check_handle_owner
from agents.tokens import Caller
from board.inbox import inbox_of
from board.messages import MessageNotFound
from board.records import MESSAGES
from board.rows import PostRow, ReadMarkRow
from storage.local import upserts


def mark(session: Session, caller: Caller, handle: str, read_to: str | None, *, now: datetime) -> None:
    """Note that `handle` has read its inbox up to a message, itself included; None means nothing is read.

    Raises:
        InvalidPath, NotRegistered, IdentityMismatch: the inbox isn't the caller's.
        MessageNotFound: there is no such message.
    """
    check_handle_owner(session, caller, handle)
    if read_to is None:
        session.exec(delete(ReadMarkRow).where(col(ReadMarkRow.handle) == handle))
        return
    named = select(PostRow.id).where(PostRow.folder == MESSAGES, PostRow.filename == read_to)
    if session.exec(named).first() is None:
        raise MessageNotFound(f"There is no message {read_to!r:.100}.")
    upserts.put(session, ReadMarkRow, [{"handle": handle, "read_to": read_to, "at": now}], key=("handle",))


def read_to(session: Session, handle: str) -> str | None:
    """Tell the newest message that `handle` has read; None if it never said."""
    return session.exec(select(ReadMarkRow.read_to).where(ReadMarkRow.handle == handle)).first()


def unread(session: Session, handle: str) -> ColumnElement[bool]:
    """The condition that a message of the inbox is unread, for a listing."""
    return col(PostRow.filename) > (read_to(session, handle) or "")


def count_unread(session: Session, handle: str) -> int:
    """Count the unread messages of an inbox.

    Raises:
        InvalidPath, NotRegistered: nobody has that handle.
    """
    reached = inbox_of(session, handle)
    query = select(func.count()).select_from(PostRow).where(reached.scope, unread(session, handle))
    return session.exec(query).one()
