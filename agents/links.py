"""Links that sign somebody in, once and soon, for people who have no token at hand."""

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, select, update

from agents.accounts import get_open
from agents.roles import Role
from agents.rows import SignInLinkRow, UserRow
from agents.secrets import Kind, keyed_hash, random_text
from storage.errors import NotFound
from storage.ids import new_id

LIFE = timedelta(minutes=15)
PATH = "/signin/link"
"""The page that takes a link's secret, as the rest of its path."""


class LinkSpent(NotFound):
    """The link was used, is too old, or never was."""

    code = "LINK_SPENT"


def make(session: Session, user: str, *, secret: bytes, now: datetime) -> str:
    """Make a link's path for `user`; it can't be had again.

    Raises:
        UserNotFound: there is no such account, or it is closed.
    """
    get_open(session, user)
    text = random_text(43)
    digest = keyed_hash(secret, Kind.LINK, text)
    row = SignInLinkRow(id=new_id("lnk"), user=user, digest=digest, created_at=now, expires_at=now + LIFE)
    session.add(row)
    session.flush()
    return f"{PATH}/{text}"


def find_user(session: Session, text: str, *, secret: bytes, now: datetime) -> str | None:
    """Tell whom a link's secret would sign in, without using it up; None if nobody, as when the account is closed."""
    asked = select(SignInLinkRow.user).join(UserRow, col(UserRow.name) == col(SignInLinkRow.user))
    is_open = col(UserRow.role) != Role.VISITOR
    return session.exec(asked.where(is_open, *_usable(text, secret, now))).first()


def use(session: Session, text: str, *, secret: bytes, now: datetime) -> str:
    """Use a link up and return its user; of two who try at once, one gets in.

    Raises:
        LinkSpent: it was used or ended, is too old, never was, or its account is closed.
    """
    user = find_user(session, text, secret=secret, now=now)
    if user is None or not _take(session, text, secret, now):
        raise LinkSpent("This link is used or too old.", hint="Ask an operator for a new one; it lasts 15 minutes.")
    return user


def end_all(session: Session, user: str, *, now: datetime) -> None:
    """Let none of the links made for `user` so far sign anybody in."""
    is_theirs = (col(SignInLinkRow.user) == user, col(SignInLinkRow.used_at).is_(None))
    session.exec(update(SignInLinkRow).where(*is_theirs).values(used_at=now))


def _take(session: Session, text: str, secret: bytes, now: datetime) -> bool:
    taken = session.exec(update(SignInLinkRow).where(*_usable(text, secret, now)).values(used_at=now))
    return taken.rowcount == 1


def _usable(text: str, secret: bytes, now: datetime) -> tuple[ColumnElement[bool], ...]:
    is_named = col(SignInLinkRow.digest) == keyed_hash(secret, Kind.LINK, text)
    return (is_named, col(SignInLinkRow.used_at).is_(None), col(SignInLinkRow.expires_at) > now)
