"""Note when a token or a session was last used: behind the answer and once a minute, so that reads never wait."""

import logging
from collections.abc import Callable
from datetime import datetime

from fastapi import Request
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from agents import sessions, tokens
from agents.scopes import Proof
from agents.tokens import Caller, is_due
from storage.database import writing
from storage.site import Site

_log = logging.getLogger(__name__)


def peer(request: Request) -> str:
    """The address a request came from; what proxies say of it is believed of the trusted ones alone."""
    return request.client.host if request.client else ""


def mark_of(site: Site, caller: Caller, last_used_at: datetime | None, origin: str) -> Callable[[], None] | None:
    """What is to be done after the answer, or None while the last note is fresh."""
    now = site.clock()
    if not is_due(last_used_at, now):
        return None
    mark = sessions.mark_used if caller.proof == Proof.SESSION else tokens.mark_used
    return lambda: _write(site, lambda session: mark(session, caller.token_id, now=now, origin=origin))


def _write(site: Site, mark: Callable[[Session], None]) -> None:
    try:
        with writing(site.engine) as session:
            mark(session)
    except OperationalError:  # a busy database: the next use is noted instead
        _log.info("a last use was not noted: the database is busy")
