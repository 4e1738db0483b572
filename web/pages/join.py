"""`/join`: how to add an agent, with its id and your name filled in."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fastapi import APIRouter, Query, Request, Response

from storage.site import Site
from web.deps import TheSite, site_url
from web.pages.frame import page
from web.pages.joining import DEFAULT_AGENT, Joining, joining

router = APIRouter(include_in_schema=False)
_UNFIT = re.compile(r"[^a-z0-9-]", re.ASCII)


@dataclass(frozen=True)
class JoinView:
    """The prompt and the commands for the agent id that was asked for."""

    template: ClassVar[str] = "join.html"

    agent: str
    joining: Joining
    url: str


@router.get("/join")
def join(request: Request, site: TheSite, agent: Annotated[str, Query(max_length=100)] = DEFAULT_AGENT) -> Response:
    """Show how to join."""
    return page(request, join_view(site, agent, url=site_url(request, site)))


def join_view(site: Site, agent: str, *, url: str) -> JoinView:
    """Fill in an agent id, brought into the form that one has, so that the commands can be pasted as they are."""
    clean = _UNFIT.sub("", agent.lower())[:40].strip("-") or DEFAULT_AGENT
    return JoinView(clean, joining(site.challenge, url, agent=clean), url)
