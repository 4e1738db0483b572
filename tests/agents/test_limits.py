import sys
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlmodel import Session, select

from agents.limits import RateLimited, Window, clear, level, spend, take, tightest
from agents.rows import SpentRow
from storage.database import writing
from storage.site import Site

MINUTE = timedelta(minutes=1)


def test_a_window_holds_its_limit_and_says_exactly_when_there_is_room(session: Session, clock) -> None:
    for _ in range(3):
        spend(session, "posts:a", 3, MINUTE, clock())
        clock.forward(seconds=10)
    with pytest.raises(RateLimited) as refusal:
        spend(session, "posts:a", 3, MINUTE, clock())
    assert refusal.value.retry_after_s == 30
    clock.forward(seconds=29.999)
    with pytest.raises(RateLimited):
        spend(session, "posts:a", 3, MINUTE, clock())
    clock.forward(seconds=0.001)
    spend(session, "posts:a", 3, MINUTE, clock())


def test_a_refused_call_costs_nothing(session: Session, clock) -> None:
    spend(session, "posts:a", 1, MINUTE, clock())
    for _ in range(5):
        with pytest.raises(RateLimited):
            spend(session, "posts:a", 1, MINUTE, clock())
    assert len(session.exec(select(SpentRow)).all()) == 1


def test_budgets_do_not_share(session: Session, clock) -> None:
    spend(session, "posts:a", 1, MINUTE, clock())
    spend(session, "posts:b", 1, MINUTE, clock())
    with pytest.raises(RateLimited):
        spend(session, "posts:c", 0, MINUTE, clock())


def test_what_was_spent_is_seen_by_every_session(site: Site, clock) -> None:
    with writing(site.engine) as first:
        spend(first, "posts:a", 1, MINUTE, clock())
    with pytest.raises(RateLimited), writing(site.engine) as second:
        spend(second, "posts:a", 1, MINUTE, clock())


def test_uses_that_left_the_window_are_removed(session: Session, clock) -> None:
    for _ in range(4):
        spend(session, "posts:a", 1, MINUTE, clock())
        clock.forward(minutes=1)
    assert len(session.exec(select(SpentRow)).all()) == 1


WINDOWS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 90)), min_size=1, max_size=3)
STEPS = st.lists(st.integers(0, 40_000), min_size=1, max_size=25)


@given(WINDOWS, STEPS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_retry_after_is_exactly_enough(site: Site, shapes: list[tuple[int, int]], steps_ms: list[int]) -> None:
    """At that second the call succeeds; one second earlier it fails, and it never costs another budget."""
    windows = [Window(f"b{at}:x", most, timedelta(seconds=span)) for at, (most, span) in enumerate(shapes)]
    now = site.clock()
    with writing(site.engine) as session:
        for step in steps_ms:
            now += timedelta(milliseconds=step)
            before = [level(session, window, now).used for window in windows]
            try:
                take(session, windows, now)
            except RateLimited as refusal:
                assert [level(session, window, now).used for window in windows] == before
                _check_wait(session, windows, now, refusal.retry_after_s)
        session.rollback()


def _check_wait(session: Session, windows: list[Window], now: datetime, wait_s: int) -> None:
    with pytest.raises(RateLimited):
        take(session, windows, now + timedelta(seconds=wait_s - 1))
    if all(window.limit for window in windows):
        with session.begin_nested() as trial:
            take(session, windows, now + timedelta(seconds=wait_s))
            trial.rollback()


def test_of_two_budgets_a_refused_call_spends_neither(session: Session, clock) -> None:
    small, large = Window("small:x", 1, MINUTE), Window("large:x", 5, timedelta(hours=1))
    for pair in ([large, small], [small, large]):
        clear(session, small)
        take(session, [small], clock())
        with pytest.raises(RateLimited):
            take(session, pair, clock())
        assert level(session, large, clock()).used == 0


def test_a_budget_without_a_limit_counts_and_never_refuses(session: Session, clock) -> None:
    free = Window("free:x", None, MINUTE)
    for _ in range(50):
        take(session, [free], clock())
    assert (level(session, free, clock()).used, level(session, free, clock()).remaining) == (50, None)
    assert tightest(session.info) is None


def test_the_scarcest_budget_is_the_one_that_is_told(session: Session, clock) -> None:
    take(
        session, [Window("a:x", 9, MINUTE), Window("b:x", 2, timedelta(hours=1)), Window("c:x", None, MINUTE)], clock()
    )
    found = tightest(session.info)
    assert found is not None
    assert (found.window.budget, found.remaining, found.reset_s) == ("b:x", 1, 3600)


def test_processes_side_by_side_never_take_more_than_the_limit(site: Site) -> None:
    code = (
        "import sys; from datetime import timedelta; from pathlib import Path; from storage.settings import Settings; "
        "from storage.site import open_site; from storage.database import writing; "
        "from agents.limits import RateLimited, Window, take\n"
        "site = open_site(Settings(data=Path(sys.argv[1]), challenge=Path(sys.argv[2])))\n"
        "taken = 0\n"
        "for _ in range(20):\n"
        "    try:\n"
        "        with writing(site.engine) as session:\n"
        "            take(session, [Window('b:x', 17, timedelta(hours=1))], site.clock())\n"
        "        taken += 1\n"
        "    except RateLimited: ...\n"
        "print(taken)"
    )
    command = [sys.executable, "-c", code, str(site.settings.data), str(site.settings.challenge)]
    racers = [Popen(command, cwd=Path(__file__).resolve().parents[2], stdout=PIPE, text=True) for _ in range(2)]
    assert sum(int(racer.communicate(timeout=100)[0]) for racer in racers) == 17
