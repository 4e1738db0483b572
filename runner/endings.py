"""How a job ends, whoever ends it: the worker, the reaper or its owner. One place, one transaction."""

from collections.abc import Sequence

from sqlmodel import Session

from runner import queue, quotas, verification
from runner.rows import JobRow
from runner.run_files import write_beside_status, write_status
from runner.states import Fault, State
from storage.buckets import Change, NameTaken
from storage.site import Site

WORKER_LOST = "worker_lost"
FOLDER_BLOCKED = "run_folder_blocked"
_BLOCKED = (
    "The run's files could not be written: its bucket's owner put other files in the place of theirs "
    "while it ran, so it doesn't count."
)


def end(
    site: Site,
    session: Session,
    row: JobRow,
    state: State,
    *,
    fault: Fault = Fault.NONE,
    code: str = "",
    message: str = "",
    files: Sequence[Change] = (),
) -> None:
    """End a job: its state, its run's files, its quota where the fault was ours, and its volley's verdict.

    Whatever lies in the run's folder, the job ends: files that have no room there are given up, and a run that
    would have been complete then fails through its owner.

    Raises:
        WrongMove: it has ended before. Nothing is changed.
    """
    try:
        with session.begin_nested():
            _close(site, session, row, state, fault, code, message)
            write_beside_status(site, session, row, files)
    except NameTaken:
        if state is State.COMPLETED:
            state, fault, code, message, row.summary = State.FAILED, Fault.SUBMISSION, FOLDER_BLOCKED, _BLOCKED, None
        _close(site, session, row, state, fault, code, message)
        write_status(site, session, row)
    if fault is Fault.OURS:
        quotas.refund_run(session, row.id)
    if row.volley_id is not None:
        verification.draw_ended(site, session, row)


def _close(site: Site, session: Session, row: JobRow, state: State, fault: Fault, code: str, message: str) -> None:
    queue.move(session, row, state)
    row.finished_at, row.fault, row.code, row.message = site.clock(), fault, code, message
    session.add(row)
    session.flush()


def reap(site: Site, session: Session, job_id: str) -> bool:
    """End a job whose worker fell silent, as cancelled if its owner had asked for that, else as failed through us.

    A job that has ended or was renewed meanwhile stays as it is; the answer says whether it was ended.
    """
    row = queue.hold_job(session, job_id)
    if row not in queue.lost(session, site.clock()):
        return False
    if row.cancel_requested:
        end(site, session, row, State.CANCELLED, code="cancelled", message="The run was cancelled by its owner.")
    else:
        message = "The machine that ran this job went silent; the run is given back to your quota."
        end(site, session, row, State.FAILED, fault=Fault.OURS, code=WORKER_LOST, message=message)
    return True
