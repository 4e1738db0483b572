"""An owner who puts files in the way of a run's own neither keeps it from ending nor gets it for nothing."""

import json
from datetime import timedelta

import pytest

from runner import endings, jobs, queue, schedule, staged
from runner.launchers.local import LocalLauncher
from runner.run_files import put_text
from runner.states import Fault, State
from runner.worker import Worker
from storage.buckets import Change, Delete, Put
from storage.database import writing
from storage.site import Site
from tests.conftest import HeldClock
from tests.runner.conftest import AGENT, Owner, row_of

STATUS = "runs/one/job_status.json"
BLOCKS: dict[str, list[Change]] = {
    "a twin of the log": [Put("runs/one/JOB_LOGS.TXT", b"mine")],
    "a twin of the status": [Delete(STATUS), Put("runs/one/JOB_STATUS.JSON", b"mine")],
    "a folder of a file's name": [Put("runs/one/job_logs.txt/x", b"mine")],
    "a file of the folder's name": [Delete(STATUS), Put("runs/one", b"mine")],
    "a file of an outer folder's name": [Delete(STATUS), Put("Runs", b"mine")],
}


def _block(site: Site, owner: Owner, how: list[Change]) -> None:
    with writing(site.engine) as session:
        site.buckets(session).apply(owner.bucket, how)


def _claim(site: Site) -> None:
    with writing(site.engine) as session:
        assert queue.claim(session, worker="w", now=site.clock(), lease=timedelta(seconds=9))


def _runs_left_by_a_second(owner: Owner) -> int | None:
    """Order one more run; of five, three are left where the first one was paid for."""
    return owner.order(f"submissions/{AGENT}/honest", "elsewhere/two").quota.agent_remaining


@pytest.mark.parametrize("how", sorted(BLOCKS))
def test_a_measured_run_whose_files_have_no_room_fails_through_its_owner(how: str, site: Site, owner: Owner) -> None:
    job_id = owner.order(owner.upload("honest")).row.id
    _claim(site)
    with writing(site.engine) as session:
        row = queue.get_job(session, job_id)
        for state in (State.SERVING, State.MEASURING):
            queue.move(session, row, state)
    _block(site, owner, BLOCKS[how])
    with writing(site.engine) as session:
        row = queue.get_job(session, job_id)
        row.summary = {"score": 9.0}
        endings.end(site, session, row, State.COMPLETED, files=[put_text(row, "job_logs.txt", "log")])
    ended = row_of(site, job_id)
    assert (ended.state, ended.fault, ended.code) == ("failed", "submission", "run_folder_blocked")
    assert ended.finished_at
    assert ended.summary is None
    assert _runs_left_by_a_second(owner) == 3
    if STATUS.removeprefix("runs/one/") in owner.files("runs/one"):
        assert json.loads(owner.read(STATUS))["code"] == "run_folder_blocked"


@pytest.mark.parametrize("how", ["a twin of the log", "a twin of the status"])
def test_a_worker_runs_on_past_what_lies_in_the_way(how: str, site: Site, owner: Owner, worker: Worker) -> None:
    job_id = owner.order(owner.upload("honest")).row.id
    _block(site, owner, BLOCKS[how])
    assert worker.run_one() == job_id
    ended = row_of(site, job_id)
    assert (ended.state, ended.fault, ended.code) == ("failed", "submission", "run_folder_blocked")
    assert "owner" in ended.message
    assert _runs_left_by_a_second(owner) == 3


def test_a_failure_keeps_its_own_reason(site: Site, owner: Owner, worker: Worker) -> None:
    job_id = owner.order(owner.upload("dies_at_start")).row.id
    _block(site, owner, BLOCKS["a twin of the log"])
    assert worker.run_one() == job_id
    ended = row_of(site, job_id)
    assert (ended.state, ended.fault, ended.code) == ("failed", "submission", "server_exited")


@pytest.mark.parametrize("how", sorted(BLOCKS))
def test_a_lost_job_is_reaped(how: str, site: Site, owner: Owner, clock: HeldClock) -> None:
    job_id = owner.order(owner.upload("honest")).row.id
    _claim(site)
    _block(site, owner, BLOCKS[how])
    clock.forward(seconds=60)
    assert schedule.reap_lost(site) == [job_id]
    assert (row_of(site, job_id).state, row_of(site, job_id).fault) == ("failed", Fault.OURS)


def test_a_waiting_job_is_cancelled(site: Site, owner: Owner) -> None:
    job_id = owner.order(owner.upload("honest")).row.id
    _block(site, owner, BLOCKS["a twin of the status"])
    with writing(site.engine) as session:
        jobs.cancel(site, session, owner.caller, job_id)
    assert row_of(site, job_id).state == "cancelled"


def test_a_result_whose_file_has_no_room_is_let_go(site: Site, owner: Owner, worker: Worker, clock: HeldClock) -> None:
    owner.upload("honest")
    clock.forward(seconds=60)
    [job_id] = staged.scan(site, LocalLauncher(site.settings).refusal)
    assert worker.run_one() == job_id
    _block(site, owner, [Put(f"{row_of(site, job_id).run_prefix}/RESULT.md", b"mine")])
    assert staged.post_results(site) == []
    ended = row_of(site, job_id)
    assert (ended.state, ended.posts_result) == ("completed", False)
