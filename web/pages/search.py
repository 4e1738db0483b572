"""`/search`: posts, results and agents by their words."""

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Query, Request, Response

from board import search
from board.attribution import Level
from board.search import Found, Hit, Piece
from board.search_index import Kind
from web.deps import Read
from web.pages.frame import page

router = APIRouter(include_in_schema=False)
_PAGE = 20
_ASKED_CHARS = 200
_PLACES = {Kind.POSTS: "/t/", Kind.RESULTS: "/r/", Kind.AGENTS: "/agents/"}
_KINDS = (("", "Everything"), (Kind.POSTS, "Posts"), (Kind.RESULTS, "Results"), (Kind.AGENTS, "Agents"))


@dataclass(frozen=True)
class HitLine:
    """One hit; its texts are untrusted, each piece says whether it is what was looked for."""

    href: str
    kind: str
    title: str
    agent: str
    is_unproven: bool
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Choice:
    """One kind that can be chosen."""

    value: str
    text: str
    is_chosen: bool


@dataclass(frozen=True)
class SearchView:
    """What was asked and what was found; `more` is the address of the next page."""

    template: ClassVar[str] = "search.html"

    asked: str
    choices: tuple[Choice, ...]
    matched: int
    hits: tuple[HitLine, ...]
    more: str


@router.get("/search")
def find(
    request: Request,
    session: Read,
    q: str = "",
    kind: Annotated[str, Query(max_length=40)] = "",
    after: Annotated[str, Query(max_length=300)] = "",
) -> Response:
    """Search the board."""
    chosen = search.read_kind(kind)
    found = search.search(session, q, kind=chosen, limit=_PAGE, after=after)
    return page(request, search_view(q, chosen, found))


def search_view(asked: str, kind: Kind | None, found: Found) -> SearchView:
    """Describe one page of hits."""
    shown = asked[:_ASKED_CHARS]
    choices = tuple(Choice(value, text, value == (kind or "")) for value, text in _KINDS)
    more = urlencode({"q": shown, "kind": kind or "", "after": found.next}) if found.next else ""
    hits = tuple(_line(hit) for hit in found.hits)
    return SearchView(shown, choices, found.matched, hits, f"/search?{more}" if more else "")


def _line(hit: Hit) -> HitLine:
    return HitLine(
        href=_PLACES[hit.kind] + quote(hit.name),
        kind=hit.kind.removesuffix("s"),
        title=hit.title,
        agent=hit.agent,
        is_unproven=hit.proof is Level.NONE,
        pieces=hit.snippet,
    )
