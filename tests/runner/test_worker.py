"""From an order to its recorded end, through the real launcher and the real harness."""

import json
from pathlib import Path

import pytest
from sqlmodel import Session

from runner import jobs, queue, run_files, snapshots
from runner.queue import get_job
from runner.rows import JobRow
from runner.worker import Worker
from storage.database import reading, writing
from storage.site import Site
from tests.conftest import HeldClock
from tests.runner.conftest import AGENT, Owner, left_behind

STAGES = [
    *("run_request.json", "run_environment.json", "server.json", "benchmark.jsonl", "decode_outputs.jsonl"),
    *("decode_summary.json", "ppl_results.jsonl", "ppl_summary.json", "summary.json"),
]


def _row(site: Site, job_id: str) -> JobRow:
    with reading(site.engine) as session:
        row = get_job(session, job_id)
        session.expunge(row)
        return row


def _run(site: Site, owner: Owner, worker: Worker, name: str, **changes: bytes) -> JobRow:
    files = {key.replace("__", "."): value for key, value in changes.items()}
    job = owner.order(owner.upload(name, changes=files))
    assert worker.run_one() == job.row.id
    assert not left_behind(site.settings)
    assert list((site.settings.data / "work").iterdir()) == []
    return _row(site, job.row.id)


def test_an_honest_submission_is_measured_and_its_run_folder_is_whole(site: Site, owner: Owner, worker: Worker) -> None:
    row = _run(site, owner, worker, "honest")
    assert (row.state, row.message) == ("completed", "")
    assert row.summary is not None
    assert row.summary["tokens"] == row.summary["asked_tokens"] == 64
    assert row.summary["guard"] == pytest.approx(1.10517, abs=1e-3)
    assert row.progress_done == row.progress_total > 0
    assert set(row.times) == {"queue", "snapshot", "install", "start", "measure", "stop", "collect"}
    assert owner.files("runs/one") >= {*STAGES, "job_logs.txt", "job_status.json"}
    status = json.loads(owner.read("runs/one/job_status.json"))
    assert (status["status"], status["state"], status["stage"]) == ("completed", "completed", "measuring")
    assert status["finished_at"]
    assert b"serving" in owner.read("runs/one/job_logs.txt")
    request = json.loads(owner.read("runs/one/run_request.json"))
    assert request["submission_prefix"] == f"submissions/{AGENT}/honest"
    assert request["content_hash"] == row.content_hash


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("never_ready", "server_not_ready", "loading weights for ever"),
        ("dies_at_start", "server_exited", "code 7 before it was ready"),
        ("dies_half_way", "server_exited", "code 9 while it was measured"),
        ("nonsense", "bad_response", "NaN"),
        ("hangs", "request_timeout", "within 3 s"),
        ("short_output", "wrong_token_count", "8 tokens where 16"),
    ],
)
def test_a_submission_that_fails_is_named_logged_and_leaves_no_process(
    name: str, code: str, words: str, site: Site, owner: Owner, worker: Worker
) -> None:
    row = _run(site, owner, worker, name)
    assert (row.state, row.fault, row.code) == ("failed", "submission", code)
    assert words in row.message
    assert row.summary is None
    assert "job_logs.txt" in owner.files("runs/one")
    status = json.loads(owner.read("runs/one/job_status.json"))
    assert (status["status"], status["code"]) == ("error", code)


def test_a_server_that_lies_about_usage_gets_its_true_rate(site: Site, owner: Owner, worker: Worker) -> None:
    row = _run(site, owner, worker, "usage_lie")
    assert row.state == "completed"
    summary = json.loads(owner.read("runs/one/summary.json"))
    assert summary["total_output_tokens"] == 64
    assert summary["usage_disagreements"] == 4
    assert summary["tps"] == pytest.approx(64 / summary["duration_s"])


def test_a_failed_install_is_named_and_its_log_is_kept(site: Site, owner: Owner, worker: Worker) -> None:
    manifest = {**json.loads((Path(__file__).parents[1] / "exploits/honest/manifest.json").read_text())}
    manifest["dependencies"] = ["./absent-1.0-py3-none-any.whl"]
    row = _run(site, owner, worker, "honest", manifest__json=json.dumps(manifest).encode())
    assert (row.state, row.code) == ("failed", "install_failed")
    assert b"absent" in owner.read("runs/one/job_logs.txt")


def test_what_is_changed_after_the_order_does_not_run(site: Site, owner: Owner, worker: Worker) -> None:
    job = owner.order(owner.upload("honest"))
    owner.upload("dies_at_start", to=f"submissions/{AGENT}/honest")
    worker.run_one()
    assert _row(site, job.row.id).state == "completed"


def test_a_fault_of_ours_is_no_measurement_and_costs_no_quota(site: Site, owner: Owner, worker: Worker) -> None:
    (site.challenge.root / "public.jsonl").unlink()
    row = _run(site, owner, worker, "honest")
    assert (row.state, row.fault, row.code) == ("failed", "ours", "runner_error")
    assert "public.jsonl" not in row.message
    assert row.summary is None
    assert owner.order(f"submissions/{AGENT}/honest", "runs/two").quota.agent_remaining == 4


def test_a_run_folder_that_cannot_be_written_is_an_incident_of_ours(
    site: Site, owner: Owner, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_parts: object) -> list[object]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("runner.worker._files", full)
    row = _run(site, owner, worker, "honest")
    assert (row.state, row.fault, row.code) == ("failed", "ours", "runner_error")
    assert "OSError" in row.message


def test_a_cancelled_run_ends_within_moments(site: Site, owner: Owner, worker: Worker) -> None:
    job = owner.order(owner.upload("never_ready"))
    with writing(site.engine) as session:
        get_job(session, job.row.id).cancel_requested = True
    worker.run_one()
    row = _row(site, job.row.id)
    assert (row.state, row.code) == ("cancelled", "cancelled")
    assert json.loads(owner.read("runs/one/job_status.json"))["status"] == "canceled"
    assert "job_logs.txt" in owner.files("runs/one")


def test_a_run_that_takes_too_long_is_timed_out(
    site: Site, owner: Owner, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    brief = site.challenge.harness.model_copy(update={"run_timeout_s": 0.5})
    object.__setattr__(site, "challenge", site.challenge.model_copy(update={"harness": brief}))
    row = _run(site, owner, worker, "slow")
    assert (row.state, row.fault, row.code) == ("timed_out", "submission", "run_timeout")


def test_a_late_result_is_refused(site: Site, owner: Owner, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = snapshots.materialise

    def lose_the_lease(*parts: object) -> None:
        taken(*parts)  # type: ignore[arg-type]
        with writing(site.engine) as session:
            row = session.get_one(JobRow, job.row.id)
            row.fence += 1
            session.add(row)

    monkeypatch.setattr("runner.snapshots.materialise", lose_the_lease)
    job = owner.order(owner.upload("honest"))
    worker.run_one()
    row = _row(site, job.row.id)
    assert row.state == "preparing"
    assert row.summary is None
    assert "summary.json" not in owner.files("runs/one")


def test_an_empty_queue_gives_nothing(worker: Worker) -> None:
    assert worker.run_one() is None


def test_a_waiting_job_is_cancelled_at_once_and_never_runs(site: Site, owner: Owner, worker: Worker) -> None:
    job = owner.order(owner.upload("honest"))
    with writing(site.engine) as session:
        assert queue.place(session, get_job(session, job.row.id)) == 1
        jobs.cancel(site, session, owner.caller, job.row.id)
    assert worker.run_one() is None
    assert _row(site, job.row.id).state == "cancelled"
    assert owner.order(f"submissions/{AGENT}/honest", "runs/two").quota.agent_remaining == 4


def test_a_job_whose_status_cannot_be_written_does_not_hold_up_the_queue(
    site: Site, owner: Owner, worker: Worker, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = owner.upload("honest")
    broken = owner.order(prefix, "runs/broken").row.id
    clock.forward(seconds=1)
    sound = owner.order(prefix, "runs/sound").row.id
    written = run_files.write_status

    def fail_for_one(site: Site, session: Session, row: JobRow) -> None:
        if row.id == broken:
            raise OSError(5, "Input/output error")
        written(site, session, row)

    monkeypatch.setattr("runner.run_files.write_status", fail_for_one)
    assert worker.run_one() == broken
    assert (_row(site, broken).state, _row(site, broken).code) == ("failed", "runner_error")
    assert worker.run_one() == sound
    assert _row(site, sound).state == "completed"
