"""Bearer tokens: `pdk_` + 32 random characters + 6 of a checksum; only a keyed hash is stored."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, or_, select, update

from agents.roles import Role
from agents.rows import TokenRow, UserRow
from agents.scopes import DEFAULT, Proof, Scope, held, read_scopes
from agents.secrets import Kind, keyed_hash, random_text
from storage.errors import Invalid, NotFound, Unauthorized
from storage.ids import new_id

PREFIX = "pdk_"
SHAPE = re.compile(rf"{PREFIX}([A-Za-z0-9]{{32}})([0-9a-f]{{6}})", re.ASCII)
MARK_EVERY = timedelta(minutes=1)
"""How exact the time of a last use is."""


@dataclass(frozen=True)
class Caller:
    """Who acts. `token_id` names the token, or for `proof` = session the browser session, that showed it."""

    user: str
    token_id: str
    role: Role = Role.PERSON
    scopes: frozenset[Scope] = DEFAULT
    proof: Proof = Proof.TOKEN

    @property
    def handle(self) -> str:
        """The person's handle on the board."""
        return f"human-{self.user}"

    @property
    def is_organizer(self) -> bool:
        """Whether the caller may broadcast, hide posts and rule."""
        return self.role.at_least(Role.ORGANIZER)

    @property
    def is_operator(self) -> bool:
        """Whether the caller may run the place (accounts, quotas, the audit log) and came to do so."""
        return self.role.at_least(Role.OPERATOR) and Scope.OPERATE in self.scopes


@dataclass(frozen=True)
class Issued:
    """A new token: the only moment at which its text is known."""

    text: str
    row: TokenRow


class TokenNotFound(NotFound):
    """There is no token of that id."""

    code = "NOT_FOUND"


class BadExpiry(Invalid):
    """A token can't end before it begins."""

    code = "INVALID_REQUEST"


def issue(session: Session, user: str, *, secret: bytes, now: datetime, scopes: frozenset[Scope] = DEFAULT) -> str:
    """Make a token for `user` and return its text alone."""
    return create(session, user, secret=secret, now=now, scopes=scopes).text


def create(
    session: Session,
    user: str,
    *,
    secret: bytes,
    now: datetime,
    label: str = "",
    scopes: frozenset[Scope] = DEFAULT,
    expires_at: datetime | None = None,
) -> Issued:
    """Make a token for `user`; its text can't be had again.

    Raises:
        BadExpiry: it would be over already.
    """
    if expires_at is not None and not (expires_at > now):
        raise BadExpiry("The token would have expired already.", hint="Name a moment that is still to come.")
    body = random_text(32)
    text = f"{PREFIX}{body}{_checksum(body)}"
    row = TokenRow(
        id=new_id("tok"),
        user=user,
        digest=keyed_hash(secret, Kind.TOKEN, text),
        label=label,
        scopes=sorted(scopes),
        created_at=now,
        expires_at=expires_at,
    )
    session.add(row)
    session.flush()
    return Issued(text, row)


def rotate(session: Session, row: TokenRow, *, secret: bytes, now: datetime) -> Issued:
    """Put a new token in the place of one: same label, scopes and expiry; the old one is revoked at once.

    Raises:
        TokenNotFound: the old one isn't valid any more. Nothing was made.
    """
    session.refresh(row, with_for_update=True)  # of two who rotate it at once, one finds it revoked
    if not is_valid(row, now):
        raise TokenNotFound("That token is expired or revoked.", hint="Make a new one.")
    end(session, row, now=now)
    scopes = read_scopes(row.scopes)
    return create(session, row.user, secret=secret, now=now, label=row.label, scopes=scopes, expires_at=row.expires_at)


def revoke(session: Session, token_or_id: str, *, secret: bytes, now: datetime) -> TokenRow:
    """Revoke a token, named by itself or by its id, at once.

    Raises:
        TokenNotFound: neither is known.
    """
    row = get_row(session, token_or_id, secret=secret)
    end(session, row, now=now)
    return row


def end(session: Session, row: TokenRow, *, now: datetime) -> None:
    """Revoke a token at once, with what was handed out under it and signed in with it; again changes nothing."""
    row.revoked_at = row.revoked_at or now
    session.add(row)
    session.flush()


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
    return _caller(session, find_row(session, token, secret=secret), now)


def last_used_at(session: Session, caller: Caller) -> datetime | None:
    """Tell when the caller's token was last noted as used."""
    return session.get_one(TokenRow, caller.token_id).last_used_at


def find_holder(session: Session, token_id: str, *, now: datetime) -> Caller | None:
    """Tell who holds the token of that id; None if there is none or it is no longer valid."""
    return _caller(session, session.get(TokenRow, token_id), now)


def find_row(session: Session, token: str, *, secret: bytes) -> TokenRow | None:
    """Find a token's row; a text that can't be a token is never looked up."""
    if not is_well_formed(token):
        return None
    return session.exec(select(TokenRow).where(TokenRow.digest == keyed_hash(secret, Kind.TOKEN, token))).first()


def get_row(session: Session, token_or_id: str, *, secret: bytes) -> TokenRow:
    """Return the row of a token that is named by itself or by its id.

    Raises:
        TokenNotFound: neither is known.
    """
    row = session.get(TokenRow, token_or_id) or find_row(session, token_or_id, secret=secret)
    if row is None:
        raise TokenNotFound("There is no such token.")
    return row


def get_own(session: Session, user: str, token_id: str) -> TokenRow:
    """Return one of the user's own tokens.

    Raises:
        TokenNotFound: there is none of that id, or it is somebody else's: both answer alike.
    """
    row = session.get(TokenRow, token_id)
    if row is None or row.user != user:
        raise TokenNotFound("You have no token of that id.")
    return row


def tokens_of(session: Session, user: str, *, now: datetime) -> Sequence[TokenRow]:
    """List a user's valid tokens, newest first."""
    rows = session.exec(select(TokenRow).where(TokenRow.user == user).order_by(col(TokenRow.created_at).desc()))
    return [row for row in rows if is_valid(row, now)]


def mark_used(session: Session, token_id: str, *, now: datetime, origin: str) -> None:
    """Note a use, unless one of the last minute is noted already."""
    is_old = or_(col(TokenRow.last_used_at).is_(None), col(TokenRow.last_used_at) <= now - MARK_EVERY)
    values = {"last_used_at": now, "last_origin": origin}
    session.exec(update(TokenRow).where(col(TokenRow.id) == token_id, is_old).values(values))


def is_due(last_used_at: datetime | None, now: datetime) -> bool:
    """Tell whether a use is worth a write."""
    return last_used_at is None or last_used_at <= now - MARK_EVERY


def is_well_formed(text: str) -> bool:
    """Tell whether `text` can be a token at all: its prefix, its length, its checksum."""
    match = SHAPE.fullmatch(text)
    return match is not None and match[2] == _checksum(match[1])


def is_valid(row: TokenRow, now: datetime) -> bool:
    """Tell whether a token opens anything now."""
    return row.revoked_at is None and (row.expires_at is None or now < row.expires_at)


def _caller(session: Session, row: TokenRow | None, now: datetime) -> Caller | None:
    if row is None or not is_valid(row, now):
        return None
    user = session.get_one(UserRow, row.user)
    if user.role == Role.VISITOR:
        return None
    role = Role(user.role)
    return Caller(user=user.name, token_id=row.id, role=role, scopes=held(role, row.scopes))


def _checksum(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:6]
