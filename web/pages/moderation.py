"""`/moderation`: what was taken away or brought back, by whom, when and why."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request, Response

from board import moderation
from storage.site import Site
from web.deps import Read, TheSite
from web.pages import moments, places
from web.pages.frame import page
from web.pages.moments import Moment
from web.pages.threads import SHOWN

router = APIRouter(include_in_schema=False)
_PAGE = 50
_DONE = {"retract": "took back", "hide": "hid", "unhide": "brought back"}


@dataclass(frozen=True)
class LogLine:
    """One act: `done` is what `by` did to `target`, which `href` shows."""

    by: str
    done: str
    target: str
    href: str
    reason: str
    at: Moment


@dataclass(frozen=True)
class ModerationView:
    """The log, newest first."""

    template: ClassVar[str] = "moderation.html"

    count: int
    lines: tuple[LogLine, ...]
    older: str


@router.get("/moderation")
def log(
    request: Request,
    site: TheSite,
    session: Read,
    before: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the moderation log."""
    return page(request, moderation_view(site, moderation.log(session, limit=_PAGE, before=before or None)))


def moderation_view(site: Site, found: moderation.LogPage) -> ModerationView:
    """Describe one page of the log."""
    now = site.clock()
    lines = tuple(
        LogLine(
            by=row.actor,
            done=_DONE.get(row.action, row.action),
            target=row.target if row.folder in SHOWN else f"{row.folder}/{row.target}",
            href=places.of_path(site.central, f"{row.folder}/{row.target}"),
            reason=row.reason,
            at=moments.moment(row.at, now=now),
        )
        for row in found.rows
    )
    return ModerationView(found.count, lines, found.next or "")
