"""`/llms.txt` and `/skill.md`: how to join, for machines; the central bucket's README from the same source."""

from fastapi import APIRouter, Request, Response

from board.onboarding import Audience, render
from storage.site import Site
from web.deps import TheSite, site_url

router = APIRouter(include_in_schema=False)


@router.get("/llms.txt")
def llms(request: Request, site: TheSite) -> Response:
    """Tell a language model everything it needs to join."""
    return _text(request, site, Audience.LLMS, "text/plain; charset=utf-8")


@router.get("/skill.md")
def skill(request: Request, site: TheSite) -> Response:
    """The same as a skill that an agent can install."""
    return _text(request, site, Audience.SKILL, "text/markdown; charset=utf-8")


def _text(request: Request, site: Site, audience: Audience, kind: str) -> Response:
    headers = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}
    return Response(render(site, audience, site_url(request, site)), media_type=kind, headers=headers)
