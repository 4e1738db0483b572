"""A failure as a page, for browsers; programs keep the JSON."""

from dataclasses import dataclass
from typing import ClassVar

from fastapi import Request, Response
from sqlalchemy.exc import SQLAlchemyError

from web.pages.frame import page

_PROGRAMS = ("/v1", "/api/", "/docs", "/static/")
_TITLES = {
    404: "There is nothing here",
    405: "That doesn’t go this way",
    429: "Too much at once",
    503: "Not right now",
    507: "No room left",
}


@dataclass(frozen=True)
class FailureView:
    """What went wrong, in a sentence, and what to do next."""

    template: ClassVar[str] = "failure.html"

    status: int
    title: str
    code: str
    message: str
    hint: str


def wants_page(request: Request) -> bool:
    """Tell whether a person's browser asks, at an address that is a page."""
    if request.url.path.startswith(_PROGRAMS) or "authorization" in request.headers:
        return False
    return "text/html" in request.headers.get("accept", "")


def failure_page(request: Request, status: int, code: str, message: str, hint: str | None = None) -> Response | None:
    """Build the page of a failure, or return None where the answer stays JSON.

    Hook it before each JSON answer: `failure_page(request, status, code, message, hint) or JSONResponse(…)`.
    """
    if not wants_page(request):
        return None
    title = _TITLES.get(status, "This didn’t work" if status < 500 else "Something broke on our side")
    try:
        return page(request, FailureView(status, title, code, message, hint or ""), status=status)
    except SQLAlchemyError:
        return None  # the frame needs the database, and it may be what failed
