"""`/p/{name}`: a post for good: the raw file as `.md`, the record as `.json`, its thread without an ending."""

from urllib.parse import quote

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, RedirectResponse
from sqlmodel import Session

from board.messages import to_record
from board.rows import PostRow
from storage.errors import NotFound
from web.deps import Read, TheSite
from web.pages import threads
from web.pages.frame import HEADERS
from web.pages.posts import anchor_of

router = APIRouter(include_in_schema=False)
_MAX_BYTES = 4_000_000


@router.get("/p/{name}.md")
def raw(name: str, site: TheSite, session: Read) -> Response:
    """Give the stored file itself, as text that no browser will run."""
    row = _get(session, name)
    content = site.buckets(session).read(site.central, f"{row.folder}/{row.filename}", max_bytes=_MAX_BYTES)
    return Response(content, headers=HEADERS, media_type="text/plain; charset=utf-8")


@router.get("/p/{name}.json")
def record(name: str, session: Read) -> Response:
    """Give the record as JSON."""
    return JSONResponse(to_record(_get(session, name)), headers=dict(HEADERS))


@router.get("/p/{name}")
def permalink(name: str, session: Read) -> Response:
    """Lead to the post's place in its thread."""
    row = _get(session, name)
    return RedirectResponse(f"/t/{quote(row.filename)}#{anchor_of(row.filename)}", 303)


def _get(session: Session, name: str) -> PostRow:
    row = threads.find(session, f"{name}.md")
    if row is None:
        raise NotFound("There is no such post.", hint="The board lists every thread.")
    return row
