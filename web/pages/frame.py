"""The frame around every page: templates, headers, theme, and the state of the race.

`page(request, view)` is the only way a page leaves the server. A page's view is a frozen dataclass that
names its template; the template sees that view and the frame, nothing else.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, cast

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlmodel import Session, col, func, select

from agents.roles import Role
from agents.sessions import Visit
from board import read_marks
from board.rows import ResultRow
from runner.rows import JobRow
from runner.states import LEASED, State
from storage.database import reading
from storage.site import Site
from web.pages import figures
from web.pages.caps import cap_text
from web.pages.plates import plate
from web.sessions import find_visit, form_token, note_visit

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
STATIC = Path(__file__).resolve().parent.parent / "static"
THEMES = ("light", "dark")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Cookie, HX-Request, Accept",
    "Cache-Control": "private, no-cache",
}


class View(Protocol):
    """What a page shows; `template` is its file under `templates/`."""

    template: ClassVar[str]


@dataclass(frozen=True)
class Frame:
    """What every page shows around its content."""

    path: str
    theme: str
    title: str
    model: str
    hardware: str
    guard: str
    cap: str
    running: int
    queued: int
    verified: int
    assets: str
    user: str
    role: str
    form_token: str
    inbox: str
    unread: int
    is_operator: bool
    central: str


def environment() -> Environment:
    """Build the templates' environment: everything escaped, nothing undefined."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["plate"] = plate
    env.filters["size"] = figures.size
    env.globals["counted"] = figures.counted
    return env


def _assets() -> str:
    digest = hashlib.sha256()
    for name in ("style.css", "app.js", "htmx.min.js", "favicon.svg"):
        digest.update((STATIC / name).read_bytes())
    return digest.hexdigest()[:12]


_ENV = environment()
_ASSETS = _assets()


def page(request: Request, view: View, *, status: int = 200) -> Response:
    """Render `view` in the frame, with the headers every page carries.

    A reader who holds these very bytes is answered 304.
    """
    site = cast(Site, request.app.state.site)
    visit = find_visit(request, site)
    after = note_visit(request, site, visit)
    with reading(site.engine) as session:
        frame = frame_of(request, site, session, visit)
    html = render(view, frame).encode()
    etag = f'"{hashlib.sha256(html).hexdigest()[:32]}"'
    if status == 200 and request.headers.get("if-none-match") == etag:
        return Response(status_code=304, headers={**HEADERS, "ETag": etag}, background=after)
    return HTMLResponse(html, status, {**HEADERS, "ETag": etag}, background=after)


def render(view: View, frame: Frame) -> str:
    """Fill the view's template."""
    return _ENV.get_template(view.template).render(view=view, frame=frame)


def frame_of(request: Request, site: Site, session: Session, visit: Visit | None) -> Frame:
    """Read the state of the race, and who looks at it."""
    challenge = site.challenge
    return Frame(
        path=request.url.path,
        theme=theme_of(request),
        title=challenge.title,
        model=challenge.model.rpartition("/")[2],
        hardware=challenge.hardware,
        guard=challenge.guard.field.upper(),
        cap=cap_text(site),
        running=_jobs(session, tuple(sorted(LEASED))),
        queued=_jobs(session, (State.QUEUED,)),
        verified=session.exec(
            select(func.count()).where(ResultRow.verification == "valid", ResultRow.kept_off == "")
        ).one(),
        assets=_ASSETS,
        user=visit.caller.user if visit else "",
        role=visit.caller.role if visit else Role.VISITOR,
        form_token=form_token(request, site) if visit else "",
        inbox=visit.caller.handle if visit else "",
        unread=read_marks.count_unread(session, visit.caller.handle) if visit else 0,
        is_operator=visit is not None and visit.caller.is_operator,
        central=str(site.central),
    )


def _jobs(session: Session, states: tuple[str, ...]) -> int:
    return session.exec(select(func.count()).where(col(JobRow.state).in_(states))).one()


def theme_of(request: Request) -> str:
    """Read the chosen theme, or an empty string where the system decides."""
    chosen = request.cookies.get("theme", "")
    return chosen if chosen in THEMES else ""
