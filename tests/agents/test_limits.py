from datetime import timedelta

import pytest
from sqlmodel import Session, select

from agents.limits import RateLimited, spend
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
