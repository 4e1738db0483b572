"""`/stats`: what the race's published sessions took, and the newest of them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from fastapi import APIRouter, Request, Response
from sqlmodel import Session

from board.attribution import Level, level_of
from board.rows import TraceRow
from board.stats import stats
from board.traces_index import folder_of
from board.traces_listing import TraceQuery, find_traces
from storage.site import Site
from web.deps import Read, TheSite
from web.pages import figures, files, moments
from web.pages.frame import page
from web.pages.moments import Moment

router = APIRouter(include_in_schema=False)
_NEWEST = 20
_GROUPS = 50
_KINDS = {
    "total": "All",
    "input": "Read",
    "output": "Written",
    "cache_read": "Read from a cache",
    "cache_creation": "Written to a cache",
    "reasoning": "Thought",
}


@dataclass(frozen=True)
class GroupLine:
    """The sessions that have one model, agent or day in common."""

    name: str
    tokens: str
    sessions: int
    silent: int


@dataclass(frozen=True)
class Group:
    """One table: what its rows are called, the first of them, the largest first, and how many there are in all."""

    of: str
    lines: tuple[GroupLine, ...]
    count: int


@dataclass(frozen=True)
class SessionLine:
    """One published session; `tokens` is a dash where it doesn't report them."""

    session: str
    agent: str
    is_unproven: bool
    model: str
    harness: str
    tokens: str
    href: str
    at: Moment


@dataclass(frozen=True)
class StatsView:
    """Sums over what is reported: a floor. `kinds` are pairs of a kind of token and its sum."""

    template: ClassVar[str] = "stats.html"

    sessions: int
    counted: int
    agents: int
    cost: str
    kinds: tuple[tuple[str, str], ...]
    groups: tuple[Group, ...]
    newest: tuple[SessionLine, ...]


@router.get("/stats")
def show(request: Request, site: TheSite, session: Read) -> Response:
    """Show the sums."""
    return page(request, stats_view(site, session))


def stats_view(site: Site, session: Session) -> StatsView:
    """Read the sums and the newest sessions."""
    told = stats(session, now=site.clock())
    found = find_traces(session, TraceQuery(limit=_NEWEST, expand=True), expand_limit=_NEWEST)
    cost, sessions = told["cost_usd"], told["sessions_counted"] + told["sessions_missing_tokens"]
    return StatsView(
        sessions=sessions,
        counted=told["sessions_counted"],
        agents=told["agents_reporting"],
        cost=f"{cost:,.2f} $" if cost is not None else figures.MISSING,
        kinds=tuple(
            (word, f"{told['tokens'][kind]:,}" if told["missing"][kind] < sessions else figures.MISSING)
            for kind, word in _KINDS.items()
        ),
        groups=(
            _group("Model", told["by_model"]),
            _group("Agent", told["by_agent"]),
            _group("Day", told["by_day"], by_name=True),
        ),
        newest=tuple(_session(site, row) for row in found.rows),
    )


def _group(of: str, groups: dict[str, Any], *, by_name: bool = False) -> Group:
    """List groups by their tokens, or with `by_name` the last name first."""
    ordered = sorted(groups.items(), key=lambda item: item[0], reverse=by_name)
    if not by_name:
        ordered.sort(key=lambda item: -item[1]["total_tokens"])
    lines = tuple(
        GroupLine(
            name=name,
            tokens=f"{group['total_tokens']:,}" if group["sessions_counted"] else figures.MISSING,
            sessions=group["sessions_counted"] + group["sessions_missing_tokens"],
            silent=group["sessions_missing_tokens"],
        )
        for name, group in ordered[:_GROUPS]
    )
    return Group(of, lines, len(ordered))


def _session(site: Site, row: TraceRow) -> SessionLine:
    return SessionLine(
        session=row.session_id,
        agent=row.agent,
        is_unproven=level_of(row.frontmatter) is Level.NONE,
        model=row.model or "not named",
        harness=row.harness,
        tokens=figures.MISSING if row.total_tokens is None else f"{row.total_tokens:,}",
        href=files.page_of(site.central, folder_of(row.agent, row.session_id)),
        at=moments.moment(row.promoted_at, now=site.clock()),
    )
