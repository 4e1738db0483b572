"""Tokens that people make for themselves: never stronger and never longer-lived than what they make them with."""

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from agents import tokens
from agents.rows import BrowserSessionRow, TokenRow
from agents.scopes import DEFAULT, Proof, Scope, ScopeMissing, read_scopes
from agents.tokens import Caller, Issued
from storage.database import hold
from storage.errors import Conflict

MOST = 100
"""Valid tokens that one person may have."""


class TooManyTokens(Conflict):
    """The person has as many tokens as anybody may."""

    code = "TOO_MANY_TOKENS"


@dataclass(frozen=True)
class Wish:
    """What somebody asks of a new token; no scopes means the usual ones that they have themselves."""

    label: str = ""
    scopes: frozenset[Scope] | None = None
    expires_at: datetime | None = None


def mint(session: Session, caller: Caller, wish: Wish, *, secret: bytes, now: datetime) -> Issued:
    """Make a token for the caller.

    Raises:
        ScopeMissing: it would be allowed what the caller isn't.
        BadExpiry: it would be over already.
        TooManyTokens: the caller has `MOST`.
    """
    scopes = wish.scopes if wish.scopes is not None else DEFAULT & caller.scopes
    _check_held(caller, scopes)
    hold(session, [f"tokens/{caller.user}"])  # of two who make their last one at once, one is refused
    if not (len(tokens.tokens_of(session, caller.user, now=now)) < MOST):
        raise TooManyTokens(f"You have {MOST} tokens.", hint="Revoke one that you no longer use.")
    ends = [moment for moment in (wish.expires_at, _end_of(session, caller)) if moment is not None]
    return tokens.create(
        session,
        caller.user,
        secret=secret,
        now=now,
        label=wish.label,
        scopes=scopes,
        expires_at=min(ends, default=None),
    )


def rotate(session: Session, caller: Caller, token_id: str, *, secret: bytes, now: datetime) -> Issued:
    """Put a new token in the place of one of the caller's own, which is revoked at once.

    Raises:
        TokenNotFound: the caller has no such valid token.
        ScopeMissing: it is allowed what the caller isn't.
    """
    row = tokens.get_own(session, caller.user, token_id)
    _check_held(caller, read_scopes(row.scopes))
    return tokens.rotate(session, row, secret=secret, now=now)


def _check_held(caller: Caller, scopes: frozenset[Scope]) -> None:
    missing = sorted(scopes - caller.scopes)
    if missing:
        raise ScopeMissing(
            f"You can't give a scope that you don't have: {', '.join(missing)}.",
            hint=f"You have {', '.join(sorted(caller.scopes))}.",
        )


def _end_of(session: Session, caller: Caller) -> datetime | None:
    """When the token ends that the caller came with, or signed in with."""
    signed_in = session.get(BrowserSessionRow, caller.token_id) if caller.proof == Proof.SESSION else None
    token_id = signed_in.token_id if signed_in else caller.token_id
    row = session.get(TokenRow, token_id) if token_id else None
    return row.expires_at if row else None
