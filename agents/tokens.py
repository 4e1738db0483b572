"""Bearer tokens: `pdk_` + 32 random characters + 6 of a checksum; only a keyed hash is stored."""

import hashlib
import hmac
import secrets
import string
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, select

from agents.rows import TokenRow, UserRow
from storage.errors import NotFound, Unauthorized
from storage.ids import new_id

PREFIX = "pdk_"
_ALPHABET = string.ascii_letters + string.digits


@dataclass(frozen=True)
class Caller:
    """Who is behind a valid token."""

    user: str
    is_organizer: bool
    token_id: str

    @property
    def handle(self) -> str:
        """The person's handle on the board."""
        return f"human-{self.user}"


class TokenNotFound(NotFound):
    """There is no token of that id."""

    code = "NOT_FOUND"


def issue(session: Session, user: str, *, secret: bytes, now: datetime, label: str = "") -> str:
    """Make a token for `user` and return it; it can't be shown again."""
    body = "".join(secrets.choice(_ALPHABET) for _ in range(32))
    token = f"{PREFIX}{body}{_checksum(body)}"
    session.add(TokenRow(id=new_id("tok"), user=user, digest=_digest(token, secret), label=label, created_at=now))
    session.flush()
    return token


def authenticate(session: Session, token: str, *, secret: bytes, now: datetime) -> Caller:
    """Return who is behind `token`.

    Raises:
        Unauthorized: it is malformed, unknown, expired or revoked.
    """
    caller = find_caller(session, token, secret=secret, now=now)
    if caller is None:
        raise Unauthorized("The token is not valid.", hint="Ask the operator for a new one: paddock user add NAME.")
    return caller


def find_caller(session: Session, token: str, *, secret: bytes, now: datetime) -> Caller | None:
    """Tell who is behind `token`; None if it is malformed, unknown, expired or revoked."""
    row = session.exec(select(TokenRow).where(TokenRow.digest == _digest(token, secret))).first()
    return _caller(session, row, now)


def find_holder(session: Session, token_id: str, *, now: datetime) -> Caller | None:
    """Tell who holds the token of that id; None if there is none or it is no longer valid."""
    return _caller(session, session.get(TokenRow, token_id), now)


def _caller(session: Session, row: TokenRow | None, now: datetime) -> Caller | None:
    if row is None or row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
        return None
    user = session.get_one(UserRow, row.user)
    return Caller(user=user.name, is_organizer=user.is_organizer, token_id=row.id)


def revoke(session: Session, token_or_id: str, *, secret: bytes, now: datetime) -> TokenRow:
    """Revoke a token, named by itself or by its id, at once.

    Raises:
        TokenNotFound: neither is known.
    """
    by_id = session.get(TokenRow, token_or_id)
    row = by_id or session.exec(select(TokenRow).where(TokenRow.digest == _digest(token_or_id, secret))).first()
    if row is None:
        raise TokenNotFound("There is no such token.")
    row.revoked_at = row.revoked_at or now
    session.add(row)
    return row


def _digest(token: str, secret: bytes) -> str:
    return hmac.new(secret, token.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:6]
