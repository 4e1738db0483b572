"""The durable queue: order, leases, fences."""

import threading
from datetime import timedelta

import pytest

from runner import queue
from runner.queue import Lease, LeaseLost, WrongMove
from runner.rows import JobRow
from runner.states import State
from storage.database import writing
from storage.site import Site
from tests.conftest import HeldClock
from tests.runner.conftest import Owner

LEASE = timedelta(seconds=3)


def _three(owner: Owner, clock: HeldClock) -> list[str]:
    prefix = owner.upload("honest")
    ids = []
    for number in range(3):
        clock.forward(seconds=1)
        ids.append(owner.order(prefix, f"runs/{number}").row.id)
    return ids


def test_the_job_that_waited_longest_is_claimed_first(site: Site, owner: Owner, clock: HeldClock) -> None:
    ids = _three(owner, clock)
    with writing(site.engine) as session:
        assert [queue.place(session, queue.get_job(session, job_id)) for job_id in ids] == [1, 2, 3]
        claimed = [queue.claim(session, worker="w", now=clock(), lease=LEASE) for _ in range(4)]
        assert [lease.job_id if lease else None for lease in claimed] == [*ids, None]
        assert queue.place(session, queue.get_job(session, ids[0])) is None


def test_two_workers_at_once_never_get_the_same_job(site: Site, owner: Owner, clock: HeldClock) -> None:
    ids = _three(owner, clock)
    taken: list[str] = []

    def work() -> None:
        for _ in range(3):
            with writing(site.engine) as session:
                lease = queue.claim(session, worker="w", now=clock(), lease=LEASE)
            if lease:
                taken.append(lease.job_id)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == sorted(ids)


def test_an_older_fence_or_a_lease_that_ran_out_counts_for_nothing(site: Site, owner: Owner, clock: HeldClock) -> None:
    _three(owner, clock)
    with writing(site.engine) as session:
        lease = queue.claim(session, worker="w", now=clock(), lease=LEASE)
        assert lease is not None
        assert queue.held(session, lease, clock()).id == lease.job_id
        with pytest.raises(LeaseLost):
            queue.held(session, Lease(lease.job_id, lease.fence - 1), clock())
        clock.forward(seconds=2)
        queue.renew(session, lease, now=clock(), lease=LEASE)
        clock.forward(seconds=2)
        assert queue.held(session, lease, clock()).id == lease.job_id
        assert queue.lost(session, clock()) == []
        clock.forward(seconds=1)
        with pytest.raises(LeaseLost):
            queue.renew(session, lease, now=clock(), lease=LEASE)
        assert [row.id for row in queue.lost(session, clock())] == [lease.job_id]


def test_an_ended_job_is_held_by_nobody_and_ends_only_once(site: Site, owner: Owner, clock: HeldClock) -> None:
    _three(owner, clock)
    with writing(site.engine) as session:
        lease = queue.claim(session, worker="w", now=clock(), lease=LEASE)
        assert lease is not None
        row = session.get_one(JobRow, lease.job_id)
        queue.move(session, row, State.FAILED)
        with pytest.raises(LeaseLost):
            queue.held(session, lease, clock())
        with pytest.raises(WrongMove):
            queue.move(session, row, State.COMPLETED)
        assert row.state == State.FAILED
