"""Submissions that nobody asked to run, and the elected process that looks for them."""

from sqlmodel import select

from board import results
from board.rows import ResultRow
from runner import schedule, staged
from runner.launchers.local import LocalLauncher
from runner.queue import get_job
from runner.schedule import Ticker
from runner.worker import Worker
from storage.database import reading
from storage.site import Site
from tests.conftest import HeldClock, eventually
from tests.runner.conftest import AGENT, Owner


def _scan(site: Site) -> list[str]:
    return staged.scan(site, LocalLauncher(site.settings).refusal)


def test_a_settled_submission_is_benchmarked_once_and_its_result_posted_once(
    site: Site, owner: Owner, worker: Worker, clock: HeldClock
) -> None:
    prefix = owner.upload("honest")
    assert _scan(site) == [], "its upload may not be over"
    clock.forward(seconds=site.settings.staged_settle)
    [job_id] = _scan(site)
    assert _scan(site) == []
    assert staged.post_results(site) == []
    assert worker.run_one() == job_id
    [filename] = staged.post_results(site)
    assert staged.post_results(site) == []
    with reading(site.engine) as session:
        row, job = results.get_row(session, filename), get_job(session, job_id)
        assert row.agent == AGENT
        assert job.summary is not None
        assert row.claimed == round(float(str(job.summary["score"])), 6)
        assert row.submission == f"{owner.bucket.uri}/{prefix}"
        assert job.run_prefix == f"runs/auto-{job.content_hash[:12]}"
        assert "private reference records" in row.reason


def test_a_changed_submission_is_benchmarked_again(site: Site, owner: Owner, clock: HeldClock) -> None:
    prefix = owner.upload("honest")
    clock.forward(seconds=60)
    assert len(_scan(site)) == 1
    owner.upload("usage_lie", to=prefix)
    assert _scan(site) == []
    clock.forward(seconds=60)
    assert len(_scan(site)) == 1


def test_the_owners_quota_pays_and_is_never_overdrawn(site: Site, owner: Owner, clock: HeldClock) -> None:
    for number in range(7):
        owner.upload("honest", to=f"submissions/{AGENT}/s{number}", changes={"n.txt": str(number).encode()})
    clock.forward(seconds=60)
    assert len(_scan(site)) == 5
    assert _scan(site) == []
    clock.forward(hours=25)
    assert len(_scan(site)) == 2


def test_what_cannot_run_or_is_no_submission_is_passed_over(site: Site, owner: Owner, clock: HeldClock) -> None:
    owner.upload("honest", to=f"submissions/{AGENT}/bad", changes={"manifest.json": b"{"})
    owner.upload("honest", to="submissions/someone-else/mine")
    owner.upload("honest", to="elsewhere/mine")
    clock.forward(seconds=60)
    assert _scan(site) == []


def test_a_failed_benchmark_posts_nothing(site: Site, owner: Owner, worker: Worker, clock: HeldClock) -> None:
    owner.upload("dies_at_start")
    clock.forward(seconds=60)
    assert len(_scan(site)) == 1
    worker.run_one()
    assert staged.post_results(site) == []
    assert _scan(site) == []


def test_a_race_without_auto_benchmark_queues_nothing(site: Site, owner: Owner, clock: HeldClock) -> None:
    owner.upload("honest")
    clock.forward(seconds=60)
    object.__setattr__(site, "challenge", site.challenge.model_copy(update={"auto_benchmark": False}))
    assert _scan(site) == []


def test_one_process_ticks_and_another_takes_over_when_it_ends(
    site: Site, owner: Owner, worker: Worker, clock: HeldClock
) -> None:
    first, second = Ticker(site), Ticker(site)
    first.tick()
    owner.upload("honest")
    clock.forward(seconds=60)
    second.tick()
    assert worker.run_one() is None
    first.close()
    second.tick()
    assert worker.run_one() is not None
    second.close()


def test_ticks_find_queue_and_post_without_being_asked(
    site: Site, owner: Owner, worker: Worker, clock: HeldClock
) -> None:
    owner.upload("honest")
    clock.forward(seconds=60)
    with schedule.ticking(site):
        eventually(worker.run_one, what="a queued benchmark")

        def posted() -> bool:
            with reading(site.engine) as session:
                return session.exec(select(ResultRow)).first() is not None

        eventually(posted, what="the posted result")
