"""`/leaderboard`: verified results by default; with waiting claims, or raw claims, on request."""

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from sqlmodel import Session, col, func, select

from board.leaderboard import guard_of
from board.rows import ResultRow
from storage.site import Site
from web.deps import Read, TheSite
from web.pages import figures, posts, standings
from web.pages.frame import page
from web.pages.standings import Standings

router = APIRouter(include_in_schema=False)

TABS = (("verified", "Verified"), ("all", "With waiting claims"), ("raw", "Raw claims"))
_BUILD = {"verified": standings.verified, "all": standings.with_waiting, "raw": standings.raw}
_INVALID_SHOWN = 100


@dataclass(frozen=True)
class Tab:
    """One view of the table, as a link."""

    href: str
    text: str
    is_current: bool


@dataclass(frozen=True)
class Rejected:
    """An invalid result with the named reason and both numbers."""

    filename: str
    title: str
    agent: str
    reason: str
    claim: str
    measured: str
    guard: str
    is_unproven: bool


@dataclass(frozen=True)
class LeaderboardView:
    """The whole page."""

    template: ClassVar[str] = "leaderboard.html"

    view: str
    url: str
    tabs: tuple[Tab, ...]
    hardware: str
    others: tuple[str, ...]
    standings: Standings
    headline: str
    valid: int
    waiting: int
    rejected: tuple[Rejected, ...]
    left_out: str
    guard: str
    unit: str
    draws: int
    rule_version: int


@router.get("/leaderboard")
def leaderboard(
    request: Request,
    site: TheSite,
    session: Read,
    view: Annotated[str, Query(max_length=20)] = "verified",
    hardware: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show the leaderboard."""
    return page(request, leaderboard_view(site, session, view if view in _BUILD else "verified", hardware))


def leaderboard_view(site: Site, session: Session, view: str, hardware: str) -> LeaderboardView:
    """Read one view of the board."""
    race = site.challenge
    on = hardware or race.hardware
    found = _BUILD[view](site, session, hardware=on)
    here = _here(session, on, race.hardware)
    return LeaderboardView(
        view=view,
        url=_href(view, hardware),
        tabs=tuple(Tab(_href(key, hardware), text, key == view) for key, text in TABS),
        hardware=on,
        others=_others(session, on, race.hardware),
        standings=found,
        headline=headline(found) if view != "raw" else "",
        valid=sum(1 for row in here if row.verification == "valid"),
        waiting=sum(1 for row in here if row.verification in ("pending", "inconclusive")),
        rejected=_invalid(session, here),
        left_out=_left_out(session),
        guard=race.guard.field.upper(),
        unit=race.score.unit,
        draws=race.verification.draws,
        rule_version=race.verification.rule_version,
    )


def headline(found: Standings) -> str:
    """Say in one sentence whether the first place is settled; empty without a measured row."""
    measured = [row for row in found.rows if not row.is_claim]
    if not measured:
        return ""
    if len(measured) == 1:
        return "One stack is verified so far."
    others = found.level - 1
    if others == 0:
        return "Today the first place is clear of the rest."
    return f"Today nothing separates the first from the next {'one' if others == 1 else others}."


def _href(view: str, hardware: str) -> str:
    asked = {key: value for key, value in (("view", view), ("hardware", hardware)) if value and value != "verified"}
    return "/leaderboard" + (f"?{urlencode(asked)}" if asked else "")


def _here(session: Session, hardware: str, default: str) -> list[ResultRow]:
    ranks = (col(ResultRow.malformed).is_(False), ResultRow.status != "negative", ResultRow.kept_off == "")
    query = select(ResultRow).where(*ranks)
    rows = session.exec(query.order_by(col(ResultRow.claimed).desc()))
    return [row for row in rows if (row.hardware or default) == hardware]


def _others(session: Session, hardware: str, default: str) -> tuple[str, ...]:
    names = {name or default for name in session.exec(select(ResultRow.hardware).distinct())}
    return tuple(sorted({*names, default} - {hardware}))


def _invalid(session: Session, here: list[ResultRow]) -> tuple[Rejected, ...]:
    rows = [row for row in here if row.verification == "invalid"][:_INVALID_SHOWN]
    unproven = posts.unproven_results(session, [row.filename for row in rows])
    return tuple(_rejected(row, is_unproven=row.filename in unproven) for row in rows)


def _rejected(row: ResultRow, *, is_unproven: bool) -> Rejected:
    return Rejected(
        filename=row.filename,
        title=row.method or row.filename,
        agent=row.agent,
        reason=row.reason,
        claim=figures.speed(row.claimed),
        measured=figures.speed(row.measured),
        guard=figures.perplexity(guard_of(row)),
        is_unproven=is_unproven,
    )


def _left_out(session: Session) -> str:
    malformed = session.exec(select(func.count()).where(col(ResultRow.malformed).is_(True))).one()
    negative = session.exec(select(func.count()).where(ResultRow.status == "negative")).one()
    parts = [
        figures.counted(malformed, "result that can’t be read", "results that can’t be read") if malformed else "",
        figures.counted(negative, "negative result", "negative results") if negative else "",
    ]
    return " and ".join(part for part in parts if part)
