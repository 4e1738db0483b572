"""`/audit`: every write, for operators."""

from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter, Depends, Request, Response

from agents import audit
from agents.rows import AuditRow
from storage.site import Site
from web.api.audit import AuditListing
from web.deps import Read, TheSite
from web.pages.frame import page
from web.pages.moments import Moment, moment
from web.sessions import signed_in_operator

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class AuditLine:
    """One write; `actor` is empty where nobody proved who they are."""

    id: int
    at: Moment
    actor: str
    proof: str
    origin: str
    action: str
    target: str


@dataclass(frozen=True)
class AuditView:
    """A page of the log, what was asked for, and the link to what comes next."""

    template: ClassVar[str] = "audit.html"

    lines: list[AuditLine]
    count: int
    matched: int
    actor: str
    action: str
    since: str
    until: str
    older: str


@router.get("/audit", dependencies=[Depends(signed_in_operator)])
def show(
    request: Request,
    site: TheSite,
    session: Read,
    query: AuditListing,
) -> Response:
    """Show the log."""
    found = audit.find(session, query)
    asked = request.query_params
    older = str(request.url.include_query_params(before=found.next).query) if found.next else ""
    view = AuditView(
        lines=[_line(site, row) for row in found.rows],
        count=found.count,
        matched=found.matched,
        actor=query.actor or "",
        action=query.action or "",
        since=asked.get("since", ""),
        until=asked.get("until", ""),
        older=f"/audit?{older}" if older else "",
    )
    return page(request, view)


def _line(site: Site, row: AuditRow) -> AuditLine:
    return AuditLine(
        row.id or 0, moment(row.at, now=site.clock()), row.actor, row.proof, row.origin, row.action, row.target
    )
