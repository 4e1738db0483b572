"""Light or dark: a form first, so that the switch works without script and nothing flashes."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Form, Request
from fastapi.responses import RedirectResponse

from web.forms import maybe_form_visit
from web.pages.frame import THEMES

router = APIRouter(include_in_schema=False)
_YEAR_S = 365 * 24 * 3600


@router.post("/theme", dependencies=[Depends(maybe_form_visit)])
def choose(request: Request, theme: Annotated[str, Form()] = "") -> RedirectResponse:
    """Keep the choice in a cookie and go back to the page; anything but light or dark means the system's."""
    answer = RedirectResponse(_back(request), 303)
    if theme in THEMES:
        answer.set_cookie("theme", theme, max_age=_YEAR_S, httponly=True, samesite="lax")
    else:
        answer.delete_cookie("theme")
    return answer


def _back(request: Request) -> str:
    """Name the page the form stood on, if it is one of ours; a path can't leave this host."""
    came = urlsplit(request.headers.get("referer", ""))
    if came.netloc != request.headers.get("host") or not came.path.startswith("/") or came.path.startswith("//"):
        return "/"
    return came.path + (f"?{came.query}" if came.query else "")
