"""A data folder that fills up under a run: the job ends once, as ours, and the worker goes on when there is room."""

import contextlib
import os
import subprocess
from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError

from runner.runs import Run
from runner.schedule import reap_lost
from runner.worker import Worker
from storage.buckets import Put
from storage.settings import Settings
from storage.site import Site
from tests.conftest import HeldClock
from tests.runner.conftest import Owner, left_behind, row_of

ROOM = 24_000_000


@pytest.fixture
def settings(settings: Settings) -> Iterator[Settings]:
    """The machine's settings with a data folder of little room."""
    settings.data.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(settings.data)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    yield settings
    subprocess.run(["umount", "--lazy", str(settings.data)], check=True)


def _fill(run: Run) -> list[Put]:
    """Stand in for the collection: leave no room for it."""
    with (run.site.settings.data / "filler").open("wb", buffering=0) as filler:
        while filler.write(bytes(65_536)):
            continue
    return []


def test_a_disk_that_fills_while_it_is_measured_ends_the_job_once_and_as_ours(
    site: Site, owner: Owner, worker: Worker, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = owner.upload("honest")
    job_id = owner.order(prefix).row.id
    with monkeypatch.context() as patched:
        patched.setattr("runner.worker._files", _fill)
        with contextlib.suppress(OSError, OperationalError):  # no room at all: the reaper ends the job
            worker.run_one()
    assert not left_behind(site.settings)
    (site.settings.data / "filler").unlink()
    clock.forward(seconds=60)
    reap_lost(site)
    row = row_of(site, job_id)
    assert (row.state, row.fault) == ("failed", "ours")
    assert b'"state": "failed"' in owner.read("runs/one/job_status.json")
    second = owner.order(prefix, "runs/two")
    assert second.quota.agent_remaining == 4
    assert worker.run_one() == second.row.id
    assert row_of(site, second.row.id).state == "completed"


def test_a_disk_without_room_for_the_snapshot_is_our_fault(site: Site, owner: Owner, worker: Worker) -> None:
    job_id = owner.order(owner.upload("honest", changes={"weights.bin": os.urandom(9_000_000)})).row.id
    (site.settings.data / "filler").write_bytes(bytes(8_000_000))
    worker.run_one()
    row = row_of(site, job_id)
    assert (row.state, row.fault, row.code) == ("failed", "ours", "runner_error")
    assert not (site.settings.data / "work" / job_id).exists()
