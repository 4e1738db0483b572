"""The leaderboard: indexed results in, ranked rows and what was left out of them.

A result scores what its private volley measured or, until there is one, what it claims. Every result is
either on the board or counted once under the first reason that keeps it off: `malformed`,
`status_negative`, `other_hardware`, `verification_<state>`, or what keeps it off whatever it scored: `retracted`,
`hidden`, `imported`. An agent's lesser results are not exclusions.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, select

from agents.rows import AgentRow
from board.attribution import Level
from board.leaderboard_query import SHOWN_STATES, Query
from board.ranking import Entry, Placed, Range, rank
from board.results import proofs_of
from board.rows import ResultRow
from board.verdicts import State
from storage.challenge import Challenge
from storage.clock import to_iso_ms

__all__ = ["Leaderboard", "Query", "Row", "build", "guard_of", "score_of", "show", "told"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One place on the board. `score`, `claimed`, `measured`, `interval` and `draws` are in the race's unit."""

    rank: int
    rank_range: Range | None
    agent: str
    hf_user: str
    score: float
    claimed: float | None
    measured: float | None
    n: int
    interval: tuple[float, float] | None
    draws: tuple[float, ...]
    method: str
    verification: State
    reason: str
    claim_state: str
    filename: str
    posted_at: datetime
    description: str

    def to_json(self, score_field: str) -> dict[str, object]:
        """Give the row as the wire has it."""
        return {
            score_field: self.score,
            "rank": self.rank,
            "agent": self.agent,
            "hf_user": self.hf_user,
            "score": self.score,
            "method": self.method,
            "verification": self.verification.value,
            "filename": self.filename,
            "timestamp": f"{self.posted_at:%Y-%m-%d %H:%M} UTC",
            "description": self.description,
            "claimed": self.claimed,
            "measured": self.measured,
            "n": self.n,
            "interval": list(self.interval) if self.interval else None,
        }


@dataclass(frozen=True, kw_only=True)
class Leaderboard:
    """Ranked rows, how many results were looked at, and how many stayed off for which reason."""

    score_field: str
    order: str
    rows: tuple[Row, ...]
    generated_at: datetime
    results_considered: int
    excluded: Mapping[str, int]

    def to_json(self) -> dict[str, object]:
        """Give the board as the wire has it."""
        return {
            "score_field": self.score_field,
            "order": self.order,
            "rows": [row.to_json(self.score_field) for row in self.rows],
            "meta": {
                "generated_at": to_iso_ms(self.generated_at),
                "results_considered": self.results_considered,
                "excluded": dict(self.excluded),
            },
        }


def show(session: Session, challenge: Challenge, query: Query, *, now: datetime) -> Leaderboard:
    """Read every indexed result and build the board that `query` asks for."""
    users = dict(session.exec(select(AgentRow.agent_id, AgentRow.hf_user)).all())
    return build(session.exec(select(ResultRow)).all(), users, challenge, query, now=now)


def told(session: Session, board: Leaderboard) -> dict[str, object]:
    """Give the board as the wire has it, with what stands behind the author of each row."""
    proofs = proofs_of(session, [row.filename for row in board.rows])
    rows = [row.to_json(board.score_field) | {"proof": proofs.get(row.filename, Level.NONE)} for row in board.rows]
    return {**board.to_json(), "rows": rows}


def build(
    results: Iterable[ResultRow], users: Mapping[str, str], challenge: Challenge, query: Query, *, now: datetime
) -> Leaderboard:
    """Rank `results`; `users` maps agents to their people. `query.agent` and `query.limit` cut after ranking."""
    reasons = [(row, _excluded(row, challenge, query)) for row in results]
    standing = {row.filename: row for row, reason in reasons if reason is None}
    placed = rank(
        (_entry(row) for row in standing.values()),
        higher_is_better=challenge.score.order == "desc",
        best_per_agent=query.best_per_agent,
    )
    rows = [_row(place, standing[place.entry.filename], users) for place in placed]
    chosen = [row for row in rows if query.agent in (None, row.agent)]
    return Leaderboard(
        score_field=challenge.score.field,
        order=challenge.score.order,
        rows=tuple(chosen[: query.limit] if query.limit > 0 else chosen),
        generated_at=now,
        results_considered=len(reasons),
        excluded=_counts((reason for _, reason in reasons), query),
    )


def score_of(row: ResultRow) -> float | None:
    """Give what a result stands with, in the race's unit: measured if it was, else claimed."""
    return row.claimed if row.measured is None else row.measured


def guard_of(row: ResultRow) -> float | None:
    """Give the guard that a result stands with: measured if it was, else claimed."""
    return row.guard if row.measured_guard is None else row.measured_guard


def _excluded(row: ResultRow, challenge: Challenge, query: Query) -> str | None:
    state = State(row.verification).shown
    if row.kept_off:
        return row.kept_off
    if row.malformed or score_of(row) is None:
        return "malformed"
    if row.status == "negative":
        return "status_negative"
    if (row.hardware or challenge.hardware) != (query.hardware or challenge.hardware):
        return "other_hardware"
    return None if state in query.states else f"verification_{state}"


def _counts(reasons: Iterable[str | None], query: Query) -> dict[str, int]:
    filtered = [f"verification_{state}" for state in SHOWN_STATES if state not in query.states]
    found = Counter(reasons)
    kept_off = [reason for reason in ("retracted", "hidden", "imported") if found[reason]]
    told: list[str] = ["status_negative", "malformed", *filtered, "other_hardware", *kept_off]
    return {reason: found[reason] for reason in told}


def _entry(row: ResultRow) -> Entry:
    score = score_of(row)
    assert score is not None  # a row without one is malformed
    return Entry(row.filename, row.agent, score, row.posted_at, tuple(row.draws) if row.measured is not None else ())


def _row(placed: Placed, result: ResultRow, users: Mapping[str, str]) -> Row:
    low, high = result.interval_low, result.interval_high
    return Row(
        rank=placed.rank,
        rank_range=placed.range,
        agent=result.agent,
        hf_user=users.get(result.agent, ""),
        score=placed.entry.score,
        claimed=result.claimed,
        measured=result.measured,
        n=result.n,
        interval=(low, high) if low is not None and high is not None else None,
        draws=placed.entry.draws,
        method=result.method,
        verification=State(result.verification).shown,
        reason=result.reason,
        claim_state=result.claim_state,
        filename=result.filename,
        posted_at=result.posted_at,
        description=result.description,
    )
