"""The ticks write the audit log up, once a minute."""

from agents import audit
from runner.schedule import Ticker
from storage.database import reading, writing
from storage.site import Site
from tests.conftest import HeldClock


def written(site: Site) -> int:
    with reading(site.engine) as session:
        buckets = site.buckets(session)
        is_there = buckets.stat(site.audit, "audit/202611.jsonl")
        return len(buckets.read(site.audit, "audit/202611.jsonl").splitlines()) if is_there else 0


def test_a_tick_writes_the_audit_log_up_and_then_leaves_it_alone_for_a_minute(site: Site, clock: HeldClock) -> None:
    def write() -> None:
        with writing(site.engine) as session:
            audit.record(session, caller=None, action="a.b", target="c", now=clock())

    ticker = Ticker(site)
    write()
    ticker.tick()
    assert written(site) == 1
    write()
    clock.forward(seconds=59)
    ticker.tick()
    assert written(site) == 1
    clock.forward(seconds=1)
    ticker.tick()
    assert written(site) == 2
    ticker.close()
