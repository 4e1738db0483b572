"""People's accounts, made by an operator."""

from datetime import datetime

from sqlmodel import Session

from agents.names import is_user_name
from agents.rows import UserRow
from storage.errors import Invalid


class BadUserName(Invalid):
    """That can't be a user's name."""

    code = "INVALID_PATH"


def add(session: Session, name: str, *, organizer: bool = False, now: datetime) -> UserRow:
    """Add a person, or return the one who is there; an organizer stays one.

    Raises:
        BadUserName: the name has another form or is reserved.
    """
    if not is_user_name(name):
        raise BadUserName(f"{name!r:.80} can't be a user name: 1 to 34 of a-z, 0-9 and hyphens, and not reserved.")
    user = session.get(UserRow, name) or UserRow(name=name, created_at=now)
    user.is_organizer = user.is_organizer or organizer
    session.add(user)
    session.flush()
    return user
