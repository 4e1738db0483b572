"""A worker process that is killed or told to stop in the middle of a measurement."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from runner import jobs, queue
from runner.queue import Lease, LeaseLost, get_job
from runner.rows import JobRow
from runner.schedule import reap_lost
from runner.states import State
from storage.clock import utc_now
from storage.database import reading, writing
from storage.settings import Settings
from storage.site import Site, open_site
from tests.conftest import HeldClock, eventually
from tests.runner.conftest import AGENT, EXPLOITS, Owner, left_behind, make_owner

ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import sys
from pathlib import Path
from runner.worker import main
from storage.settings import Settings
from storage.site import open_site
settings = Settings(data=Path(sys.argv[1]), challenge=Path(sys.argv[2]), tick=0.05, lease=3.0,
                    server_env=Path(sys.prefix), trusted_submitters="ada", sandbox_uid=int(sys.argv[4]))
main(open_site(settings), int(sys.argv[3]))
"""


@pytest.fixture
def live(settings: Settings) -> Iterator[Site]:
    """A site whose clock runs, as the worker process's does."""
    opened = open_site(settings, clock=utc_now)
    yield opened
    opened.engine.dispose()


@pytest.fixture
def live_owner(live: Site) -> Owner:
    with writing(live.engine) as session:
        return make_owner(live, session)


@contextmanager
def _worker(site: Site) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    reading_end, writing_end = os.pipe()
    arguments = [
        str(site.settings.data),
        str(site.settings.challenge),
        str(reading_end),
        str(site.settings.sandbox_uid),
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, *arguments], cwd=ROOT, pass_fds=(reading_end,), start_new_session=True
    )
    os.close(reading_end)
    try:
        yield process, writing_end
    finally:
        process.kill()
        process.wait()


def _row(site: Site, job_id: str) -> JobRow:
    with reading(site.engine) as session:
        row = get_job(session, job_id)
        session.expunge(row)
        return row


def _order(owner: Owner) -> str:
    return owner.order(owner.upload("slow")).row.id


def _nothing_left(site: Site) -> bool:
    return not left_behind(site.settings)


def test_a_killed_worker_leaves_no_process_and_its_job_ends_once_with_a_reason(live: Site, live_owner: Owner) -> None:
    job_id = _order(live_owner)
    with _worker(live) as (process, _):
        eventually(lambda: _row(live, job_id).state == State.MEASURING, what="the measurement")
        eventually(lambda: len(left_behind(live.settings)) >= 3, what="server, forwarder and harness")
        process.send_signal(signal.SIGKILL)
        process.wait()
        eventually(lambda: _nothing_left(live), within_s=10, what="the end of every process of the run")
    row = _row(live, job_id)
    assert row.state == State.MEASURING
    later = HeldClock()
    later.now = utc_now()
    object.__setattr__(live, "clock", later)
    later.forward(seconds=1)
    assert reap_lost(live) == [], "the lease has not run out yet"
    later.forward(seconds=4)
    assert reap_lost(live) == [job_id]
    assert reap_lost(live) == []
    with writing(live.engine) as session, pytest.raises(LeaseLost):
        queue.held(session, Lease(job_id, row.fence), later())
    row = _row(live, job_id)
    assert (row.state, row.fault, row.code) == ("failed", "ours", "worker_lost")
    assert b'"worker_lost"' in live_owner.read("runs/one/job_status.json")
    assert live_owner.order(f"submissions/{AGENT}/slow", "runs/two").quota.agent_remaining == 4


@pytest.mark.parametrize("how", ["SIGTERM", "parent gone"])
def test_a_stopped_worker_ends_its_run_and_says_so(how: str, live: Site, live_owner: Owner) -> None:
    job_id = _order(live_owner)
    with _worker(live) as (process, lifeline):
        eventually(lambda: _row(live, job_id).state == State.MEASURING, what="the measurement")
        if how == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        os.close(lifeline)
        assert process.wait(20) == 0
        assert _nothing_left(live)
    row = _row(live, job_id)
    assert (row.state, row.fault, row.code) == ("failed", "ours", "worker_lost")


def test_a_restarted_worker_removes_what_a_killed_one_left_on_disk(live: Site, live_owner: Owner) -> None:
    job_id = _order(live_owner)
    left = live.settings.data / "work" / job_id
    with _worker(live) as (process, _):
        eventually(lambda: _row(live, job_id).state == State.MEASURING, what="the measurement")
        process.kill()
        process.wait()
    assert left.is_dir()
    later = HeldClock()
    later.now = utc_now()
    later.forward(seconds=10)
    object.__setattr__(live, "clock", later)
    assert reap_lost(live) == [job_id]
    with _worker(live):
        eventually(lambda: not left.exists(), what="the sweep")


WAITS = "import threading\ndef build_wheel(*_a, **_k): threading.Event().wait()\n"
PROJECT = (
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    '[project]\nname = "waits"\nversion = "1"\n'
)


def _order_that_stays(owner: Owner, state: State) -> str:
    """Order a run that stays in `state` until somebody ends it."""
    if state is State.PREPARING:
        manifest = json.loads((EXPLOITS / "honest/manifest.json").read_text()) | {"dependencies": ["./waits"]}
        files = {"manifest.json": json.dumps(manifest), "waits/backend.py": WAITS, "waits/pyproject.toml": PROJECT}
        changes = {path: text.encode() for path, text in files.items()}
        return owner.order(owner.upload("honest", changes=changes)).row.id
    return owner.order(owner.upload("never_ready" if state is State.SERVING else "slow")).row.id


@pytest.mark.parametrize("state", [State.PREPARING, State.SERVING, State.MEASURING])
@pytest.mark.parametrize("how", ["killed", "stopped past its lease"])
def test_a_worker_lost_at_any_stage_costs_one_job_and_what_it_says_later_is_refused(
    how: str, state: State, live: Site, live_owner: Owner, sandboxing: None
) -> None:
    job_id = _order_that_stays(live_owner, state)
    with _worker(live) as (process, _):
        eventually(lambda: _row(live, job_id).state == state and left_behind(live.settings), what="the stage")
        process.send_signal(signal.SIGKILL if how == "killed" else signal.SIGSTOP)
        eventually(lambda: reap_lost(live) == [job_id], within_s=10, what="the end of the lease")
        process.send_signal(signal.SIGCONT)
        eventually(lambda: _nothing_left(live), within_s=10, what="the end of every process of the run")
        if how != "killed":
            next_job = live_owner.order(live_owner.upload("honest"), "runs/two").row.id
            eventually(lambda: _row(live, next_job).state == State.COMPLETED, what="the next job")
    row = _row(live, job_id)
    assert (row.state, row.fault, row.code, row.stage) == ("failed", "ours", "worker_lost", state)
    assert live_owner.files("runs/one") == {"job_status.json"}
    assert b'"worker_lost"' in live_owner.read("runs/one/job_status.json")


@pytest.mark.parametrize("state", [State.PREPARING, State.SERVING, State.MEASURING])
def test_a_run_is_cancelled_at_any_stage(state: State, live: Site, live_owner: Owner, sandboxing: None) -> None:
    job_id = _order_that_stays(live_owner, state)
    with _worker(live):
        eventually(lambda: _row(live, job_id).state == state and left_behind(live.settings), what="the stage")
        with writing(live.engine) as session:
            jobs.cancel(live, session, live_owner.caller, job_id)
        eventually(lambda: _row(live, job_id).state == State.CANCELLED, within_s=10, what="the end")
        assert _nothing_left(live)
    assert json.loads(live_owner.read("runs/one/job_status.json"))["status"] == "canceled"


def test_two_worker_processes_share_the_queue_and_run_each_job_once(live: Site, live_owner: Owner) -> None:
    prefix = live_owner.upload("honest")
    job_ids = [live_owner.order(prefix, f"runs/{number}").row.id for number in range(5)]
    with _worker(live), _worker(live):
        eventually(lambda: all(_row(live, one).state == State.COMPLETED for one in job_ids), within_s=60, what="all")
    rows = [_row(live, one) for one in job_ids]
    assert [row.fence for row in rows] == [1] * 5
    assert len({row.worker for row in rows}) == 2
    assert _nothing_left(live)
