"""The worker: claim, run, record, again. One submission at a time; its own process in production."""

import json
import logging
import os
import secrets
import signal
import socket
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlmodel import Session

from runner import endings, queue, run_files
from runner.heart import Cancelled, Heart, WorkerStopped
from runner.launchers import trees
from runner.launchers.contract import JobsDisabled, Launcher, SubmissionFailed
from runner.launchers.local import LocalLauncher
from runner.measuring import RunTimedOut
from runner.queue import Lease, LeaseLost
from runner.rows import JobRow
from runner.runs import Run
from runner.states import ENDED, Fault, State
from storage.buckets import Put
from storage.database import reading, writing
from storage.site import Site

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """How a run ended."""

    state: State
    fault: Fault = Fault.NONE
    code: str = ""
    message: str = ""


class Worker:
    """Runs jobs of one site with one launcher, from the thread that calls it."""

    def __init__(self, site: Site, launcher: Launcher) -> None:
        self._site = site
        self._launcher = launcher
        self._name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}"
        self._work = site.settings.data.resolve() / "work"

    def run_forever(self, stop: threading.Event) -> None:
        """Run jobs until `stop` is set; a run under way is then ended and recorded as ours."""
        self.sweep()
        while not stop.is_set():
            try:
                found = self.run_one(stop)
            except Exception:  # noqa: BLE001 - the database may be back for the next job
                _log.exception("the worker failed outside a run")
                found = None
            if found is None:
                stop.wait(self._site.settings.tick)

    def run_one(self, stop: threading.Event | None = None) -> str | None:
        """Run the job that has waited longest to its recorded end; return its id, or None where none waits."""
        lease = timedelta(seconds=self._site.settings.lease)
        with writing(self._site.engine) as session:
            held = queue.claim(session, worker=self._name, now=self._site.clock(), lease=lease)
        if held is None:
            return None
        self._work.mkdir(mode=0o700, parents=True, exist_ok=True)
        workspace = self._work / held.job_id
        try:
            self._run(held, workspace, stop or threading.Event())
        finally:
            trees.remove(workspace)
        return held.job_id

    def sweep(self) -> None:
        """Remove what ended runs left on disk when their worker was killed."""
        for folder in self._work.glob("*"):
            with reading(self._site.engine) as session:
                row = session.get(JobRow, folder.name)
                is_over = row is None or State(row.state) in ENDED
            if is_over:
                trees.remove(folder)

    def _run(self, held: Lease, workspace: Path, stop: threading.Event) -> None:
        with Heart(self._site, held, stop) as heart:
            run = Run(self._site, self._launcher, held, heart, self._row(held), workspace)
            run.times["queue"] = _seconds_queued(run.row)
            try:
                ending = _carry_out(run)
                self._record(run, ending)
            except LeaseLost as lost:
                _log.warning("job %s: %s Nothing of this run is recorded.", held.job_id, lost)

    def _row(self, held: Lease) -> JobRow:
        with reading(self._site.engine) as session:
            row = queue.get_job(session, held.job_id)
            session.expunge(row)
            return row

    def _record(self, run: Run, ending: Ending) -> None:
        """Write the run's files and its end in one transaction; if that fails, its end alone, as ours."""
        started = time.monotonic()
        try:
            with writing(self._site.engine) as session:
                self._end(session, run, ending, _files(run), started)
        except LeaseLost:
            raise
        except Exception as error:  # noqa: BLE001 - a full disk or a bug of ours: the job still ends, once
            _log.exception("job %s: its run could not be recorded", run.row.id)
            trees.remove(run.workspace)  # it may be what filled the disk
            with writing(self._site.engine) as session:
                self._end(session, run, _incident(error), [], started)

    def _end(self, session: Session, run: Run, ending: Ending, files: list[Put], started: float) -> None:
        row = queue.held(session, run.lease, self._site.clock())
        if ending.state is State.COMPLETED:
            row.summary = _summary(run)
        endings.end(
            self._site,
            session,
            row,
            ending.state,
            fault=ending.fault,
            code=ending.code,
            message=ending.message,
            files=files,
        )
        row.times = {**run.times, "collect": time.monotonic() - started}
        session.add(row)


def _carry_out(run: Run) -> Ending:
    try:
        run.carry_out()
    except SubmissionFailed as failed:
        run.log += failed.log
        return Ending(State.FAILED, Fault.SUBMISSION, failed.code, f"{failed.message} {failed.hint}".strip())
    except RunTimedOut:
        most = run.site.challenge.harness.run_timeout_s
        return Ending(State.TIMED_OUT, Fault.SUBMISSION, "run_timeout", f"Measuring took longer than {most:g} s.")
    except Cancelled:
        return Ending(State.CANCELLED, Fault.NONE, "cancelled", "The run was cancelled by its owner.")
    except JobsDisabled as disabled:
        return Ending(State.FAILED, Fault.OURS, disabled.code, disabled.message)
    except WorkerStopped:
        return Ending(State.FAILED, Fault.OURS, endings.WORKER_LOST, "The worker was stopped; ask for the run again.")
    except LeaseLost:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it was, it is ours and no measurement
        _log.exception("job %s failed through us", run.row.id)
        return _incident(error)
    return Ending(State.COMPLETED)


def _incident(error: Exception) -> Ending:
    what = f"The runner failed ({type(error).__name__}); this is not the submission's fault and costs no quota."
    return Ending(State.FAILED, Fault.OURS, "runner_error", what)


def _files(run: Run) -> list[Put]:
    row, out = run.row, run.workspace / "harness" / "out"
    found = [out / name for name in run_files.HARNESS if (out / name).is_file()]
    return [
        *(run_files.put_json(row, name, record) for name, record in run.records.items()),
        *(Put(f"{row.run_prefix}/{path.name}", path) for path in found),
        run_files.put_text(row, run_files.LOGS, run.log),
    ]


def _summary(run: Run) -> dict[str, object]:
    """Take from the harness's summary what ranks and what gates; tokens were counted from ids."""
    challenge = run.site.challenge
    whole: dict[str, Any] = json.loads((run.workspace / "harness" / "out" / "summary.json").read_text())
    return {
        "score": whole["tps"],
        "guard": whole["ppl"],
        "tokens": whole["total_output_tokens"],
        "asked_tokens": whole["num_prompts"] * whole["output_len"],
        challenge.score.field: whole["tps"],
        challenge.guard.field: whole["ppl"],
        "total_tps": whole["total_tps"],
        "duration_s": whole["duration_s"],
    }


def _seconds_queued(row: JobRow) -> float:
    return (row.started_at - row.created_at).total_seconds() if row.started_at else 0.0


def main(site: Site, lifeline_fd: int | None) -> None:
    """Run jobs until SIGTERM, SIGINT, or the end of file on `lifeline_fd`, which our parent's death brings."""
    logging.basicConfig(level=logging.INFO, format="worker: %(levelname)s %(message)s")
    stop = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda _number, _frame: stop.set())
    if lifeline_fd is not None:
        threading.Thread(target=_await_end, args=(lifeline_fd, stop), name="lifeline", daemon=True).start()
    Worker(site, LocalLauncher(site.settings)).run_forever(stop)


def _await_end(lifeline_fd: int, stop: threading.Event) -> None:
    while os.read(lifeline_fd, 1):
        continue
    stop.set()
