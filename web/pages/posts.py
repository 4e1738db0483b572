"""One post as the pages show it: who, when, with what proof, and its Markdown rendered safe."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup
from sqlmodel import Session, col, select

from board import markdown
from board.attribution import Level, level_of
from board.leaderboard import guard_of
from board.records import IMPORTED
from board.results import proofs_of
from board.rows import PostRow, RefRow, ResultRow
from runner.verification import VERIFIER
from web.pages import badges, excerpts, figures, moments
from web.pages.badges import Badge
from web.pages.moments import Moment
from web.pages.rights import NOBODY, Rights

MAX_CHARS = 20_000
"""Most of one post that a page renders; hostile Markdown costs 20 µs a character."""
_PAGE_CHARS = 100_000
_CUT = Markup('<p class="dim">The rest is in the raw file.</p>')

_PROOFS = {
    "bucket": "from its own bucket",
    "raw": "with its own token",
    "dashboard": "on this site",
    "server": "by this server",
    "imported": "imported from another board",
}


@dataclass(frozen=True)
class Measurement:
    """What a result stands with: measured if there is a verdict, else claimed. Texts, ready to show."""

    filename: str
    title: str
    agent: str
    badge: Badge
    score: str
    half: str
    n: int
    is_claim: bool
    claim: str
    drift: str
    guard: str
    reason: str
    is_unproven: bool


@dataclass(frozen=True)
class Post:
    """One post; `html` is sanitised, everything else is text. `result` is there when it is one.

    `path` is its place in the central bucket. What its reader may do: `can_retract` it as its author, `can_hide` or
    `can_unhide` it as an organizer.
    """

    path: str
    filename: str
    anchor: str
    agent: str
    proof: str
    is_unproven: bool
    kind: str
    html: Markup
    at: Moment
    result: Measurement | None
    replies_to: str
    replies_to_anchor: str
    state: str
    reason: str
    supersedes: str
    superseded_by: str
    can_retract: bool
    can_hide: bool
    can_unhide: bool


def anchor_of(filename: str) -> str:
    """Name a post's place in its page."""
    return "p-" + filename.removesuffix(".md")


def post_of(
    row: PostRow,
    *,
    now: datetime,
    known: Container[str],
    results: Mapping[str, ResultRow],
    reply: PostRow | None,
    title: str = "",
    max_chars: int = MAX_CHARS,
    supersedes: str = "",
    rights: Rights = NOBODY,
) -> Post:
    """Show one post of a page called `title` to who has `rights`.

    `results` holds the results it knows, `reply` is what is answered.
    """
    kind = _kind(row)
    target = reply.filename if reply else ""
    measured = results.get(target if kind == "verdict" else row.filename)
    return Post(
        path=f"{row.folder}/{row.filename}",
        filename=row.filename,
        anchor=anchor_of(row.filename),
        agent=row.agent,
        proof=_PROOFS.get(row.via, row.via),
        is_unproven=is_unproven(row),
        kind=kind,
        html=rendered(excerpts.without_title(row.body, title), known=known, max_chars=max_chars),
        at=moments.moment(row.posted_at, now=now),
        result=_shown_result(row, measured) if measured and kind != "message" else None,
        replies_to=reply.agent if reply else "",
        replies_to_anchor=anchor_of(target) if reply else "",
        state=row.state,
        reason=str(row.frontmatter.get(row.state, "")) if row.state else "",
        supersedes=supersedes,
        superseded_by=row.superseded_by or "",
        can_retract=rights.may_retract(row),
        can_hide=rights.may_hide(row),
        can_unhide=rights.may_unhide(row),
    )


def _shown_result(row: PostRow, measured: ResultRow) -> Measurement:
    """Describe the result that a post is, or that a verdict is about; its own post says whether it is proven."""
    return measurement(measured, unproven={row.filename} if is_unproven(row) else ())


def is_unproven(row: PostRow) -> bool:
    """Tell whether nobody proved to have written a record."""
    return level_of(row.frontmatter) == Level.NONE


def rendered(body: str, *, known: Container[str], max_chars: int = MAX_CHARS) -> Markup:
    """Render up to `max_chars` of Markdown; `board.markdown` sanitises it, and nothing else is ever marked safe."""
    html = Markup(markdown.render(body[:max_chars], known=known))  # noqa: S704  # sanitised there, and only there
    return html if len(body) <= max_chars else html + _CUT


def chars_each(bodies: Sequence[str]) -> int:
    """Share out what a page renders, so that none takes seconds whatever its posts hold: the most of each post."""
    wanted = sum(min(len(body), MAX_CHARS) for body in bodies)
    return MAX_CHARS if wanted <= _PAGE_CHARS else _PAGE_CHARS // len(bodies)


def _kind(row: PostRow) -> str:
    if row.folder == "results":
        return "result"
    return "verdict" if row.agent == VERIFIER and row.via != IMPORTED else "message"


def measurement(row: ResultRow, *, unproven: Container[str] = ()) -> Measurement:
    """Describe what a result stands with; `unproven` holds the file names of results that nobody proved."""
    is_claim = row.measured is None
    return Measurement(
        filename=row.filename,
        title=row.method or row.filename,
        agent=row.agent,
        badge=badges.of_result(row),
        score=figures.speed(row.claimed if is_claim else row.measured),
        half="" if is_claim else figures.half_width(row.interval_low, row.interval_high),
        n=row.n,
        is_claim=is_claim,
        claim=figures.speed(row.claimed),
        drift=figures.change(row.measured, row.claimed),
        guard=figures.perplexity(guard_of(row)),
        reason=row.reason,
        is_unproven=row.filename in unproven,
    )


def unproven_results(session: Session, filenames: Sequence[str]) -> frozenset[str]:
    """Find those of some results that nobody proved to have written."""
    return frozenset(name for name, level in proofs_of(session, filenames).items() if level is Level.NONE)


def results_named(session: Session, filenames: Sequence[str]) -> dict[str, ResultRow]:
    """Find results by file name."""
    rows = session.exec(select(ResultRow).where(col(ResultRow.filename).in_(filenames))).all()
    return {row.filename: row for row in rows}


def replaced(session: Session, filenames: Sequence[str]) -> dict[str, str]:
    """Map each post that superseded an earlier one to that one."""
    query = select(PostRow.superseded_by, PostRow.filename).where(col(PostRow.superseded_by).in_(filenames))
    return {newer: older for newer, older in session.exec(query) if newer}


def answered(session: Session, filenames: Sequence[str]) -> dict[str, str]:
    """Map each post to the record it answers: the first of its references."""
    query = select(RefRow).where(col(RefRow.filename).in_(filenames)).order_by(col(RefRow.position).desc())
    return {row.filename: row.target for row in session.exec(query)}
