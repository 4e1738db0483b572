"""The order of the board as the pages show it: places as ranges, draws on one axis, the leader marked.

Purple belongs to the fastest verified result and to those that can't be told apart from it. A claim is
never placed by its own number: what waits for its verdict stands below what was measured.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlmodel import Session, col, select

from board.leaderboard import Query, Row, guard_of, show
from board.rows import ResultRow
from board.verdicts import State
from storage.site import Site
from web.pages import badges, figures, moments, posts, strips
from web.pages.badges import Badge
from web.pages.moments import Moment
from web.pages.strips import Axis, Measured, Strip

_SHOWN = 200


@dataclass(frozen=True)
class Standing:
    """One row. `look` is `is-record`, `is-level` or empty; `place` is empty for a row without one."""

    filename: str
    title: str
    agent: str
    description: str
    look: str
    place: str
    score: str
    half: str
    n: int
    is_claim: bool
    claim: str
    drift: str
    guard: str
    badge: Badge
    strip: Strip | None
    at: Moment
    is_unproven: bool


@dataclass(frozen=True)
class Standings:
    """Rows in order with the axis they share, which is None where nothing has a number.

    `total` counts the rows there are, shown or not; `level` those that can't be told apart from the first.
    """

    rows: tuple[Standing, ...]
    axis: Axis | None
    level: int
    total: int


def verified(site: Site, session: Session, *, hardware: str = "", limit: int = _SHOWN) -> Standings:
    """List each agent's best verified result."""
    return _standings(site, session, placed(site, session, hardware=hardware), limit=limit)


def placed(site: Site, session: Session, *, hardware: str = "") -> Sequence[Row]:
    """Rank each agent's best verified result."""
    query = Query(states=frozenset({State.VALID}), hardware=hardware)
    return show(session, site.challenge, query, now=site.clock()).rows


def best_of(site: Site, session: Session, rows: Sequence[Row], agents: Collection[str]) -> dict[str, Standing]:
    """Describe those placed rows that are of some agents."""
    found = _standings(site, session, [row for row in rows if row.agent in agents], limit=len(agents))
    return {row.agent: row for row in found.rows}


def with_waiting(site: Site, session: Session, *, hardware: str = "") -> Standings:
    """List each agent's best verified result, then every result that waits for its verdict, by its claim."""
    first = placed(site, session, hardware=hardware)
    query = Query(states=frozenset({State.PENDING}), best_per_agent=False, hardware=hardware)
    waiting = show(session, site.challenge, query, now=site.clock())
    return _standings(site, session, (*first, *waiting.rows))


def raw(site: Site, session: Session, *, hardware: str = "") -> Standings:
    """List every claim by its own number, whatever its verdict says; nothing here has a place."""
    query = Query(states=frozenset(State), best_per_agent=False, hardware=hardware)
    rows = show(session, site.challenge, query, now=site.clock()).rows
    claimed = [row for row in rows if row.claimed is not None]
    sign = -1 if site.challenge.score.order == "desc" else 1
    claimed.sort(key=lambda row: (sign * (row.claimed or 0.0), row.posted_at, row.agent))
    return _standings(site, session, claimed, by_claim=True)


def _standings(
    site: Site, session: Session, rows: Sequence[Row], *, limit: int = _SHOWN, by_claim: bool = False
) -> Standings:
    shown = rows[:limit]
    axis = strips.axis_for([_measured(row) for row in shown])
    named = [row.filename for row in shown]
    guards, unproven = _guards(session, named), posts.unproven_results(session, named)
    built = tuple(
        replace(
            _standing(site, row, axis, guards.get(row.filename), by_claim=by_claim),
            is_unproven=row.filename in unproven,
        )
        for row in shown
    )
    return Standings(built, axis, sum(1 for row in rows if _look(row)) if not by_claim else 0, len(rows))


def _guards(session: Session, filenames: Sequence[str]) -> dict[str, float]:
    found = session.exec(select(ResultRow).where(col(ResultRow.filename).in_(filenames)))
    both = ((row.filename, guard_of(row)) for row in found)
    return {filename: guard for filename, guard in both if guard is not None}


def _standing(site: Site, row: Row, axis: Axis | None, guard: float | None, *, by_claim: bool) -> Standing:
    is_claim = by_claim or row.measured is None
    low, high = row.interval or (None, None)
    return Standing(
        filename=row.filename,
        title=row.method or row.filename,
        agent=row.agent,
        description=row.description,
        look="" if by_claim else _look(row),
        place="" if is_claim else place_of(row),
        score=figures.speed(row.claimed if is_claim else row.measured),
        half="" if is_claim else figures.half_width(low, high),
        n=0 if is_claim else row.n,
        is_claim=is_claim,
        claim=figures.speed(row.claimed),
        drift=figures.change(row.measured, row.claimed),
        guard=figures.perplexity(guard),
        badge=badges.of_verdict(row.verification.value),
        strip=strips.strip(_measured(row), axis) if axis else None,
        at=moments.moment(row.posted_at, now=site.clock()),
        is_unproven=False,
    )


def place_of(row: Row) -> str:
    """Write a row's range of places, or its rank where it has no range."""
    if row.rank_range is None:
        return str(row.rank)
    return figures.places(row.rank_range.best, row.rank_range.worst)


def _look(row: Row) -> str:
    if row.measured is None or row.verification is not State.VALID:
        return ""
    if row.rank == 1:
        return "is-record"
    return "is-level" if row.rank_range is not None and row.rank_range.best == 1 else ""


def _measured(row: Row) -> Measured:
    low, high = row.interval or (None, None)
    return Measured(row.draws, row.measured, low, high, row.claimed)
