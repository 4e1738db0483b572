"""The durable queue: claim under a lease, renew it, move on, and find what lost its worker.

Every function that writes holds what it read: SQLite's session began IMMEDIATE, on PostgreSQL the job's row is locked.
A worker's word counts only while it holds the newest fence and its lease lies ahead: a late one is refused.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, func, select

from board import events
from runner.rows import JobRow
from runner.states import ENDED, LEASED, State, may_follow
from storage.errors import Conflict, NotFound


class JobNotFound(NotFound):
    """There is no such job."""

    code = "NOT_FOUND"


class LeaseLost(Conflict):
    """The job was ended, or given to another worker; what this one still says doesn't count."""

    code = "LEASE_LOST"


class WrongMove(Conflict):
    """A job can't go from its state to that one."""

    code = "WRONG_MOVE"


@dataclass(frozen=True)
class Lease:
    """A worker's hold on a job."""

    job_id: str
    fence: int


def get_job(session: Session, job_id: str) -> JobRow:
    """Return a job.

    Raises:
        JobNotFound: there is none of that id.
    """
    row = session.get(JobRow, job_id)
    if row is None:
        raise JobNotFound(f"There is no job {job_id!r:.80}.")
    return row


def hold_job(session: Session, job_id: str) -> JobRow:
    """Return a job as it is now, which nobody else changes until the transaction ends.

    Raises:
        JobNotFound: there is none of that id.
    """
    row = get_job(session, job_id)
    session.refresh(row, with_for_update=True)
    return row


def claim(session: Session, *, worker: str, now: datetime, lease: timedelta) -> Lease | None:
    """Take the job that has waited longest, or return None where none waits."""
    waiting = select(JobRow).where(JobRow.state == State.QUEUED).order_by(col(JobRow.created_at), col(JobRow.id))
    row = session.exec(waiting.limit(1).with_for_update(skip_locked=True)).first()
    if row is None:
        return None
    row.fence += 1
    row.worker = worker
    row.started_at = now
    row.lease_until = now + lease
    _set_state(row, State.PREPARING)
    session.add(row)
    session.flush()
    announce(session, row)
    return Lease(row.id, row.fence)


def held(session: Session, lease: Lease, now: datetime) -> JobRow:
    """Return the job that `lease` still holds, which nobody else changes until the transaction ends.

    Raises:
        LeaseLost: it ended, its lease ran out, or another worker has it.
    """
    return _checked(hold_job(session, lease.job_id), lease, now)


def is_to_stop(session: Session, lease: Lease, now: datetime) -> bool:
    """Tell whether the owner asked for the end of the job that `lease` still holds; waits for nobody.

    Raises:
        LeaseLost: as `held`.
    """
    return _checked(get_job(session, lease.job_id), lease, now).cancel_requested


def _checked(row: JobRow, lease: Lease, now: datetime) -> JobRow:
    is_held = row.fence == lease.fence and row.state in LEASED and row.lease_until is not None and now < row.lease_until
    if not is_held:
        raise LeaseLost(f"The job {row.id} is no longer this worker's (it is {row.state}).")
    return row


def renew(session: Session, held_lease: Lease, *, now: datetime, lease: timedelta) -> JobRow:
    """Push the end of the lease into the future.

    Raises:
        LeaseLost: there is nothing left to renew.
    """
    row = held(session, held_lease, now)
    row.lease_until = now + lease
    session.add(row)
    session.flush()
    return row


def move(session: Session, row: JobRow, state: State) -> None:
    """Bring a job to its next state; an end also takes its lease away.

    Raises:
        WrongMove: that state can't follow. Nothing is changed.
    """
    _set_state(row, state)
    if state in ENDED:
        row.lease_until = None
    session.add(row)
    session.flush()
    announce(session, row)


def announce(session: Session, row: JobRow) -> None:
    """Tell whoever follows the board which state a job is in now."""
    told = {"job_id": row.id, "agent": row.agent_id, "kind": row.kind, "state": row.state}
    events.record(session, events.Kind.JOB, told, now=row.finished_at or row.started_at or row.created_at)


def lost(session: Session, now: datetime) -> list[JobRow]:
    """List jobs whose worker has been silent past its lease."""
    leased = col(JobRow.state).in_(sorted(LEASED))
    return list(session.exec(select(JobRow).where(leased, col(JobRow.lease_until) <= now).order_by(JobRow.id)))


def place(session: Session, row: JobRow) -> int | None:
    """Count the jobs that are taken before this one, itself included; None once it left the queue."""
    if row.state != State.QUEUED:
        return None
    older = col(JobRow.created_at) < row.created_at
    twin = (col(JobRow.created_at) == row.created_at) & (col(JobRow.id) <= row.id)
    return session.exec(select(func.count()).where(JobRow.state == State.QUEUED, older | twin)).one()


def _set_state(row: JobRow, state: State) -> None:
    if not may_follow(State(row.state), state):
        raise WrongMove(f"The job {row.id} is {row.state} and can't become {state}.")
    row.state = state
    if state not in ENDED:
        row.stage = state
