"""`/queue`: what runs now, what waits and in which place, what ended lately."""

from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter, Request, Response
from sqlmodel import Session

from storage.site import Site
from web.deps import Read, TheSite
from web.pages import runs
from web.pages.frame import page
from web.pages.runs import JobLine

router = APIRouter(include_in_schema=False)
_ENDED = 20
_WAITING_SHOWN = 100


@dataclass(frozen=True)
class QueueView:
    """The queue; `waiting` is in order, its place is its position from 1."""

    template: ClassVar[str] = "queue.html"

    running: tuple[JobLine, ...]
    waiting: tuple[JobLine, ...]
    waiting_total: int
    ended: tuple[JobLine, ...]


@router.get("/queue")
def queue(request: Request, site: TheSite, session: Read) -> Response:
    """Show the queue."""
    return page(request, queue_view(site, session))


def queue_view(site: Site, session: Session) -> QueueView:
    """Read the queue."""
    waiting = runs.waiting(session)
    return QueueView(
        running=runs.lines(site, session, runs.running(session)),
        waiting=runs.lines(site, session, waiting[:_WAITING_SHOWN]),
        waiting_total=len(waiting),
        ended=runs.lines(site, session, runs.ended(session, limit=_ENDED)),
    )
