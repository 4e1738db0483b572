"""The store is swept once a day by the elected process, and ticks don't wait for it."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from agents import audit
from runner import schedule
from runner.schedule import Ticker
from storage.database import writing
from storage.local import sweep
from storage.local.sweep import Swept
from storage.site import Site
from tests.conftest import HeldClock, eventually
from tests.runner.test_writing_up import written

NOTHING = Swept(0, 0, 0, 0, 0)


def test_ticks_go_on_while_the_store_is_swept(site: Site, clock: HeldClock, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def sweep_for_long(*_: Any, **__: Any) -> Swept:
        begun.set()
        may_end.wait(60)
        return NOTHING

    monkeypatch.setattr(sweep, "sweep", sweep_for_long)
    with schedule.ticking(site):
        try:
            assert begun.wait(30)
            with writing(site.engine) as session:
                audit.record(session, caller=None, action="a.b", target="c", now=clock())
            clock.forward(minutes=2)
            eventually(lambda: written(site) == 1, what="a tick's work")
        finally:
            may_end.set()


def test_a_server_that_ends_does_not_wait_for_a_long_sweep(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, is_told = threading.Event(), threading.Event()

    def sweep_until_over(*_: Any, is_over: Callable[[], bool], **__: Any) -> Swept:
        begun.set()
        eventually(is_over, what="the word that it is over")
        is_told.set()
        return NOTHING

    monkeypatch.setattr(sweep, "sweep", sweep_until_over)
    with schedule.ticking(site):
        assert begun.wait(30)
    assert is_told.is_set()


def test_one_process_sweeps_once_a_day_even_if_a_sweep_fails(
    site: Site, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def fail(*_: Any, takes_strangers: bool, **__: Any) -> Swept:
        begun.append(takes_strangers)
        raise OSError("the disk is gone")

    monkeypatch.setattr(sweep, "sweep", fail)
    elected, other = Ticker(site), Ticker(site)
    elected.sweep()
    assert begun == []
    elected.tick()
    other.tick()
    for ticker in (elected, other, elected):
        ticker.sweep()
    assert begun == [False]
    clock.forward(days=1)
    elected.sweep()
    assert begun == [False, False]
    elected.close()
