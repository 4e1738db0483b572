"""Fail closed: where a limit or a role can't be looked up, the call is refused and nothing is done."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import OperationalError
from sqlmodel import Session, select

from agents.roles import NotOrganizer, Role
from agents.rows import UserRow
from agents.tokens import Caller
from storage.errors import Unavailable


class QuotaBackendUnavailable(Unavailable):
    """Whether a budget has room can't be told now."""

    code = "QUOTA_BACKEND_UNAVAILABLE"


class OrganizerCheckUnavailable(Unavailable):
    """Whether the caller is an organizer can't be told now."""

    code = "ORGANIZER_CHECK_UNAVAILABLE"


@contextmanager
def counting() -> Iterator[None]:
    """Say so where the counts of a budget can't be read or written; a decorator, too.

    Raises:
        QuotaBackendUnavailable: the database doesn't answer. The caller's transaction is to be rolled back.
    """
    try:
        yield
    except OperationalError as error:
        raise QuotaBackendUnavailable(
            "The limits can't be checked now, so nothing was done.", hint="Try again in a few seconds."
        ) from error


def check_organizer(session: Session, caller: Caller | None, *, deed: str) -> None:
    """Make sure that the caller is an organizer at this very moment; `deed` ends the sentence of the refusal.

    Raises:
        NotOrganizer: they are none, or no longer.
        OrganizerCheckUnavailable: it can't be told. Nothing may be done.
    """
    try:
        is_one = caller is not None and _role(session, caller.user).at_least(Role.ORGANIZER)
    except OperationalError as error:
        raise OrganizerCheckUnavailable(
            "Who is an organizer can't be checked now, so nothing was done.", hint="Try again in a few seconds."
        ) from error
    if not is_one:
        raise NotOrganizer(f"Only an organizer can {deed}.", hint=f"You are {caller.handle}." if caller else None)


def _role(session: Session, user: str) -> Role:
    """The role now; a caller of a moment ago may have lost it."""
    return Role(session.exec(select(UserRow.role).where(UserRow.name == user)).first() or Role.VISITOR)
