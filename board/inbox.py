"""What reached a handle: messages that mention it or refer to it, and broadcasts."""

from sqlmodel import Session, and_, col, select

from agents.directory import check_known
from board.listing import Folder
from board.records import EVERYBODY, MESSAGES
from board.rows import InboxRow, PostRow


def inbox_of(session: Session, handle: str) -> Folder:
    """The messages delivered to `handle`, for a listing; its own broadcasts are left out.

    Raises:
        InvalidPath, NotRegistered: nobody has that handle.
    """
    known = check_known(session, handle)
    delivered = select(InboxRow.filename).where(col(InboxRow.handle).in_([known, EVERYBODY]))
    reached = and_(col(PostRow.filename).in_(delivered), col(PostRow.agent) != known)
    return Folder(and_(col(PostRow.folder) == MESSAGES, reached))
