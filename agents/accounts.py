"""People's accounts, made by an operator."""

from collections.abc import Sequence
from datetime import datetime

from sqlmodel import Session, col, func, select

from agents.names import is_user_name
from agents.roles import Role
from agents.rows import UserRow
from storage.errors import Invalid, NotFound
from storage.local import upserts


class BadUserName(Invalid):
    """That can't be a user's name."""

    code = "INVALID_PATH"


class UserNotFound(NotFound):
    """Nobody of that name has an account, or it is closed."""

    code = "NOT_FOUND"


def add(session: Session, name: str, *, role: Role = Role.PERSON, now: datetime) -> UserRow:
    """Add a person, or return the one who is there; nobody loses a role by it.

    Raises:
        BadUserName: the name has another form or is reserved.
    """
    if not is_user_name(name):
        raise BadUserName(f"{name!r:.80} can't be a user name: 1 to 34 of a-z, 0-9 and hyphens, and not reserved.")
    upserts.insert_new(session, UserRow, [{"name": name, "role": role, "created_at": now}])
    user = session.get_one(UserRow, name, with_for_update=True)  # somebody else may be adding the same person
    user.role = user.role if Role(user.role).at_least(role) else role
    session.add(user)
    session.flush()
    return user


def set_role(session: Session, name: str, role: Role) -> UserRow:
    """Give a person another role, in force from the next call on; a visitor's tokens and sessions open nothing.

    Raises:
        UserNotFound: there is no such account.
    """
    user = session.get(UserRow, name)
    if user is None:
        raise _not_found(name)
    user.role = role
    session.add(user)
    session.flush()
    return user


def get_open(session: Session, name: str) -> UserRow:
    """Return an account that may sign in.

    Raises:
        UserNotFound: there is none, or it is closed.
    """
    user = session.get(UserRow, name)
    if user is None or user.role == Role.VISITOR:
        raise _not_found(name)
    return user


def page_of(session: Session, *, after: str, limit: int) -> Sequence[UserRow]:
    """List the next accounts after a name, by name."""
    return session.exec(select(UserRow).where(UserRow.name > after).order_by(col(UserRow.name)).limit(limit)).all()


def count(session: Session) -> int:
    """Count the accounts."""
    return session.exec(select(func.count()).select_from(UserRow)).one()


def everybody(session: Session) -> Sequence[UserRow]:
    """List every account by name."""
    return session.exec(select(UserRow).order_by(col(UserRow.name))).all()


def _not_found(name: str) -> UserNotFound:
    return UserNotFound(f"There is no user {name!r:.40}.", hint="Make the account first: paddock user add NAME.")
