import random
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from board.ranking import Entry, Range, rank
from board.statistics import estimate

START = datetime(2026, 6, 8, 15, 30, tzinfo=UTC)


def entry(agent: str, score: float, *, minute: int = 0, draws: tuple[float, ...] = ()) -> Entry:
    at = START + timedelta(minutes=minute)
    return Entry(f"{at:%Y%m%d-%H%M%S}-000_{agent}.md", agent, score, at, draws)


def volley(agent: str, centre: float, *, minute: int = 0) -> Entry:
    draws = tuple(centre * (1 + 0.002 * step) for step in range(-2, 3))
    return entry(agent, estimate(draws).score, minute=minute, draws=draws)


def agents_of(entries: list[Entry], *, higher: bool = True, best: bool = True) -> list[str]:
    return [placed.entry.agent for placed in rank(entries, higher_is_better=higher, best_per_agent=best)]


def test_the_higher_score_leads_and_where_lower_is_better_the_lower() -> None:
    entries = [entry("a", 1.0), entry("b", 3.0), entry("c", 2.0)]
    assert agents_of(entries) == ["b", "c", "a"]
    assert agents_of(entries, higher=False) == ["a", "c", "b"]


def test_ties_go_to_the_earlier_post_and_then_to_the_agents_id() -> None:
    entries = [entry("late", 5.0, minute=2), entry("zoe", 5.0, minute=1), entry("abe", 5.0, minute=1)]
    assert agents_of(entries) == ["abe", "zoe", "late"]


def test_an_agent_stands_once_with_its_best_and_its_earlier_one_in_a_tie() -> None:
    entries = [entry("a", 4.0, minute=3), entry("a", 5.0, minute=2), entry("a", 5.0, minute=1), entry("b", 4.5)]
    placed = rank(entries, higher_is_better=True, best_per_agent=True)
    assert [(p.rank, p.entry.agent, p.entry.posted_at.minute) for p in placed] == [(1, "a", 31), (2, "b", 30)]
    assert agents_of(entries, best=False) == ["a", "a", "b", "a"]


def test_neighbours_that_cannot_be_told_apart_share_a_range() -> None:
    placed = rank(
        [volley("a", 507.0), volley("b", 506.5), volley("c", 480.0)], higher_is_better=True, best_per_agent=True
    )
    assert [p.range for p in placed] == [Range(1, 2), Range(1, 2), Range(3, 3)]


def test_where_lower_is_better_the_lower_volley_has_the_better_range() -> None:
    placed = rank([volley("a", 100.0), volley("b", 90.0)], higher_is_better=False, best_per_agent=True)
    assert [(p.entry.agent, p.range) for p in placed] == [("b", Range(1, 1)), ("a", Range(2, 2))]


def test_a_claim_without_draws_has_no_range_and_pushes_nobody() -> None:
    placed = rank(
        [entry("boaster", 900.0), volley("a", 500.0), entry("single", 400.0, draws=(400.0,))],
        higher_is_better=True,
        best_per_agent=True,
    )
    assert [p.range for p in placed] == [None, Range(1, 3), None]


def test_nothing_ranks_to_nothing() -> None:
    assert rank([], higher_is_better=True, best_per_agent=True) == []


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(400, 600), st.booleans()), max_size=12))
def test_a_rank_always_lies_inside_its_range(rows: list[tuple[str, float, bool]]) -> None:
    entries = [volley(a, s, minute=i) if drawn else entry(a, s, minute=i) for i, (a, s, drawn) in enumerate(rows)]
    placed = rank(entries, higher_is_better=True, best_per_agent=False)
    assert [p.rank for p in placed] == list(range(1, len(rows) + 1))
    assert all(p.range.best <= p.rank <= p.range.worst for p in placed if p.range)


def test_more_tries_do_not_earn_a_better_place() -> None:
    """A volley of fixed size ranks by its mean, so equals stay equal however lucky their best draw was."""
    noise = random.Random(1)
    entries = []
    for index in range(60):
        draws = tuple(noise.gauss(507.0, 2.0) for _ in range(5))
        entries.append(entry(f"agent-{index:02}", estimate(draws).score, draws=draws))
    placed = rank(entries, higher_is_better=True, best_per_agent=True)
    told_apart = sum(60 - (p.range.worst - p.range.best + 1) for p in placed if p.range)
    assert told_apart / (60 * 59) < 0.05
