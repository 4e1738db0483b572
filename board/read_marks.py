"""How far somebody has read their inbox. Only its owner's explicit word moves a mark, never a reading."""

from datetime import datetime

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, func, select

from agents.ownership import check_handle_owner
from agents.tokens import Caller
from board.inbox import inbox_of
from board.messages import MessageNotFound
from board.records import MESSAGES
from board.rows import PostRow, ReadMarkRow


def mark(session: Session, caller: Caller, handle: str, read_to: str | None, *, now: datetime) -> None:
    """Note that `handle` has read its inbox up to a message, itself included; None means nothing is read.

    Raises:
        InvalidPath, NotRegistered, IdentityMismatch: the inbox isn't the caller's.
        MessageNotFound: there is no such message.
    """
    check_handle_owner(session, caller, handle)
    row = session.get(ReadMarkRow, handle)
    if read_to is None:
        if row:
            session.delete(row)
        return
    named = select(PostRow.id).where(PostRow.folder == MESSAGES, PostRow.filename == read_to)
    if session.exec(named).first() is None:
        raise MessageNotFound(f"There is no message {read_to!r:.100}.")
    row = row or ReadMarkRow(handle=handle, read_to=read_to, at=now)
    row.read_to, row.at = read_to, now
    session.add(row)
    session.flush()


def read_to(session: Session, handle: str) -> str | None:
    """Tell the newest message that `handle` has read; None if it never said."""
    row = session.get(ReadMarkRow, handle)
    return row.read_to if row else None


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
