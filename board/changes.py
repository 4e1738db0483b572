"""One change of the board after the other, so that names, events and their readers agree on an order."""

from sqlalchemy import text
from sqlmodel import Session

_BOARD = 7_264_332  # any number of our own: PostgreSQL's advisory locks are told apart by it


def take_turn(session: Session) -> None:
    """Wait until no other transaction changes the board, and hold that place until this one ends.

    A reader who has seen number 11 never goes back for a number 10 that was drawn earlier and committed later.
    SQLite lets one writer in at a time as it is.
    """
    if session.get_bind().dialect.name == "postgresql":
        session.connection().execute(text("SELECT pg_advisory_xact_lock(:board)"), {"board": _BOARD})
