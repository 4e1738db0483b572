"""Browsers that are signed in: a row for each, opened by a random cookie of which only a keyed hash is kept.

A session ends when it is left idle, when it is old, when somebody signs it out, and with the token it began with.
OAuth's place is beside `web.pages.signin`: a callback that has learnt who somebody is ends in `start`, like both
ways of signing in that are there now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, select, update

from agents import links
from agents.roles import Role
from agents.rows import BrowserSessionRow, TokenRow, UserRow
from agents.scopes import ALL, Proof, Scope, held
from agents.secrets import Kind, keyed_hash, random_text
from agents.tokens import MARK_EVERY, Caller, is_valid
from storage.errors import NotFound
from storage.ids import new_id

IDLE = timedelta(days=7)
LIFE = timedelta(days=30)
_BROWSER_CHARACTERS = 200


@dataclass(frozen=True)
class Started:
    """A new session; `cookie` is the only copy of its secret."""

    cookie: str
    row: BrowserSessionRow


@dataclass(frozen=True)
class Visit:
    """A signed-in browser's request: who, and in which session."""

    caller: Caller
    row: BrowserSessionRow


@dataclass(frozen=True)
class Place:
    """Where a sign-in came from: the address, and what the browser says it is."""

    origin: str = ""
    browser: str = ""


class SessionNotFound(NotFound):
    """There is no session of that id."""

    code = "NOT_FOUND"


def start(
    session: Session,
    user: str,
    *,
    secret: bytes,
    now: datetime,
    place: Place,
    scopes: frozenset[Scope] = ALL,
    token_id: str | None = None,
) -> Started:
    """Sign a browser in as `user`, whom the caller has made sure of; with the token it was done with, if any."""
    cookie = random_text(43)
    row = BrowserSessionRow(
        id=new_id("ses"),
        user=user,
        digest=keyed_hash(secret, Kind.SESSION, cookie),
        token_id=token_id,
        scopes=sorted(scopes),
        browser=place.browser[:_BROWSER_CHARACTERS],
        last_origin=place.origin,
        created_at=now,
        last_used_at=now,
        expires_at=now + LIFE,
    )
    session.add(row)
    session.flush()
    return Started(cookie, row)


def find_visit(session: Session, cookie: str, *, secret: bytes, now: datetime) -> Visit | None:
    """Tell who is behind a cookie; None if it is unknown or its session is over."""
    digest = keyed_hash(secret, Kind.SESSION, cookie)
    row = session.exec(select(BrowserSessionRow).where(BrowserSessionRow.digest == digest)).first()
    if row is None or not is_open(session, row, now):
        return None
    caller = caller_of(session, row)
    return Visit(caller, row) if caller.role != Role.VISITOR else None


def caller_of(session: Session, row: BrowserSessionRow) -> Caller:
    """Who acts in a session."""
    role = Role(session.get_one(UserRow, row.user).role)
    return Caller(row.user, row.id, role, held(role, row.scopes), Proof.SESSION)


def is_open(session: Session, row: BrowserSessionRow, now: datetime) -> bool:
    """Tell whether a session still opens anything."""
    if row.ended_at is not None or not (now < row.expires_at) or not (now < row.last_used_at + IDLE):
        return False
    token = session.get(TokenRow, row.token_id) if row.token_id else None
    return row.token_id is None or (token is not None and is_valid(token, now))


def sessions_of(session: Session, user: str, *, now: datetime) -> Sequence[BrowserSessionRow]:
    """List a user's open sessions, newest first."""
    asked = select(BrowserSessionRow).where(BrowserSessionRow.user == user)
    rows = session.exec(asked.order_by(col(BrowserSessionRow.created_at).desc()))
    return [row for row in rows if is_open(session, row, now)]


def end(session: Session, user: str, session_id: str, *, now: datetime) -> None:
    """Sign one of the user's browsers out.

    Raises:
        SessionNotFound: the user has none of that id.
    """
    row = session.get(BrowserSessionRow, session_id)
    if row is None or row.user != user:
        raise SessionNotFound("You have no session of that id.")
    row.ended_at = row.ended_at or now
    session.add(row)
    session.flush()


def end_all(session: Session, user: str, *, now: datetime) -> int:
    """Sign every browser of the user out, and end the links that would sign one in; returns how many browsers."""
    links.end_all(session, user, now=now)
    is_theirs = (col(BrowserSessionRow.user) == user, col(BrowserSessionRow.ended_at).is_(None))
    return session.exec(update(BrowserSessionRow).where(*is_theirs).values(ended_at=now)).rowcount


def mark_used(session: Session, session_id: str, *, now: datetime, origin: str) -> None:
    """Note a use, unless one of the last minute is noted already."""
    is_due = (col(BrowserSessionRow.id) == session_id, col(BrowserSessionRow.last_used_at) <= now - MARK_EVERY)
    session.exec(update(BrowserSessionRow).where(*is_due).values(last_used_at=now, last_origin=origin))
