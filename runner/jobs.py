"""Asking for a run, looking at it, cancelling it: what owners do with jobs."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlmodel import Session, col, func, select

from agents.names import check_agent_id
from agents.ownership import bucket_missing, check_handle_owner
from agents.registrations import check_handshake
from agents.tokens import Caller
from board.changes import take_turn
from runner import endings, queue, quotas, run_files, snapshots
from runner.launchers.contract import JobsDisabled
from runner.quotas import Quota
from runner.rows import JobRow
from runner.states import ENDED, State, old_word
from storage.clock import to_iso_ms
from storage.errors import Conflict, Forbidden, InvalidPath
from storage.ids import new_id
from storage.paths import Source, check_path
from storage.site import Site

Refusal = Callable[[str], str | None]
"""Says why a user's submissions aren't run on this machine, or None: a launcher's `refusal`."""

_MOST_PREFIX_BYTES = 900
"""Leaves room below a bucket's longest path for the names of a run's files."""


class RunPrefixInUse(Conflict):
    """Another job writes, or wrote, into that folder; the hint names it."""

    code = "RUN_PREFIX_IN_USE"


class IdempotencyMismatch(Conflict):
    """The key came before with another request."""

    code = "IDEMPOTENCY_MISMATCH"


class NotYourJob(Forbidden):
    """Only a job's owner cancels it."""

    code = "IDENTITY_MISMATCH"


@dataclass(frozen=True)
class Order:
    """What a run is asked for with; prefixes are folders of the agent's own scratch bucket."""

    agent_id: str
    submission_prefix: str
    run_prefix: str
    idempotency_key: str | None = None
    posts_result: bool = False


@dataclass(frozen=True)
class Launched:
    """A queued job and what is left of its owner's quota."""

    row: JobRow
    quota: Quota


def request(site: Site, session: Session, caller: Caller, order: Order, refusal: Refusal) -> Launched:
    """Queue a benchmark for an agent of the caller, once every check has passed. Lint costs no quota.

    Raises:
        InvalidPath, NotRegistered, IdentityMismatch, BucketMissing, BucketNotOwned: in this order.
        JobsDisabled, SubmissionNotFound, SubmissionTooLarge, BadManifest, RunPrefixInUse, RateLimited:
            nothing is kept.
    """
    agent_id = check_agent_id(order.agent_id)
    prefixes = _clean(order.submission_prefix), _clean(order.run_prefix)
    _check_run_prefix(*prefixes)
    check_handle_owner(session, caller, agent_id)
    bucket = site.buckets(session).find(site.scratch(agent_id))
    if bucket is None:
        raise bucket_missing(site.scratch(agent_id))
    check_handshake(site, session, caller, bucket)
    return _queue(site, session, caller.user, order, prefixes, refusal)


def request_staged(site: Site, session: Session, user: str, order: Order, refusal: Refusal) -> Launched:
    """Queue a benchmark that nobody asked for but the race's file; as `request`, for the bucket's owner."""
    prefixes = _clean(order.submission_prefix), _clean(order.run_prefix)
    return _queue(site, session, user, order, prefixes, refusal)


def _queue(
    site: Site, session: Session, user: str, order: Order, prefixes: tuple[str, str], refusal: Refusal
) -> Launched:
    submission_prefix, run_prefix = prefixes
    bucket = site.scratch(order.agent_id)
    take_turn(session)  # the same request may be under way; and before the buckets' locks, else two writers deadlock
    if earlier := _same_key(session, user, order, prefixes):
        return Launched(earlier, _left(site, session, earlier))
    if reason := refusal(user):
        raise JobsDisabled(reason)
    if taken := _at_prefix(session, str(bucket), run_prefix):
        raise RunPrefixInUse(f"The run prefix {run_prefix} meets that of the job {taken.id}.", hint=taken.id)
    snapshot = snapshots.take(site, session, Source(bucket, submission_prefix))
    row = JobRow(
        id=new_id("job"),
        kind="benchmark",
        state=State.QUEUED,
        agent_id=order.agent_id,
        user=user,
        submission_bucket=str(bucket),
        submission_prefix=submission_prefix,
        content_hash=snapshot.content_hash,
        run_bucket=str(bucket),
        run_prefix=run_prefix,
        hardware=site.challenge.hardware,
        idempotency_key=order.idempotency_key,
        posts_result=order.posts_result,
        created_at=site.clock(),
    )
    limits = site.challenge.limits
    quotas.spend_run(session, limits, agent_id=order.agent_id, user=user, job_id=row.id, now=site.clock())
    session.add(row)
    session.flush()
    queue.announce(session, row)
    run_files.write_beside_status(site, session, row, [])  # a folder that has no room for it is refused here
    return Launched(row, _left(site, session, row))


def _left(site: Site, session: Session, row: JobRow) -> Quota:
    limits = site.challenge.limits
    return quotas.left(session, limits, agent_id=row.agent_id, user=row.user, now=site.clock())


def _clean(prefix: str) -> str:
    return check_path(prefix.removesuffix("/"))


def _check_run_prefix(submission: str, run: str) -> None:
    if not (len(run.encode()) <= _MOST_PREFIX_BYTES):
        raise InvalidPath(f"The run prefix has more than {_MOST_PREFIX_BYTES} bytes, so its files' names have no room.")
    if f"{run}/".startswith(f"{submission}/") or f"{submission}/".startswith(f"{run}/"):
        raise InvalidPath("The run's folder and the submission's must lie apart.", hint="For instance runs/first.")


def _same_key(session: Session, user: str, order: Order, prefixes: tuple[str, str]) -> JobRow | None:
    if order.idempotency_key is None:
        return None
    query = select(JobRow).where(JobRow.user == user, JobRow.idempotency_key == order.idempotency_key)
    row = session.exec(query).first()
    if row is not None and (row.agent_id, row.submission_prefix, row.run_prefix) != (order.agent_id, *prefixes):
        raise IdempotencyMismatch(f"That Idempotency-Key belongs to the job {row.id}, which was another request.")
    return row


def _at_prefix(session: Session, bucket: str, prefix: str) -> JobRow | None:
    """Find a job whose run folder is this one, lies inside it, or holds it."""
    parts = prefix.split("/")
    above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
    overlaps = col(JobRow.run_prefix).in_(above) | (func.substr(JobRow.run_prefix, 1, len(prefix) + 1) == f"{prefix}/")
    return session.exec(select(JobRow).where(JobRow.run_bucket == bucket, overlaps)).first()


def cancel(site: Site, session: Session, caller: Caller, job_id: str) -> JobRow:
    """End a waiting job at once, or ask its worker to stop; a job that has ended stays as it is.

    Raises:
        JobNotFound: there is none.
        NotYourJob: it is somebody else's, or a draw of a verification.
    """
    row = queue.hold_job(session, job_id)
    if row.kind != "benchmark" or not (row.user == caller.user or caller.is_organizer):
        raise NotYourJob(f"The job {job_id} isn't yours to cancel.")
    if row.state == State.QUEUED:
        message = "The run was cancelled before it started."
        endings.end(site, session, row, State.CANCELLED, code="cancelled", message=message)
        quotas.refund_run(session, row.id)
    elif State(row.state) not in ENDED:
        row.cancel_requested = True
        session.add(row)
        session.flush()
    return row


def newest(session: Session, *, limit: int, agent_id: str | None = None) -> list[JobRow]:
    """List jobs, newest first."""
    query = select(JobRow).order_by(col(JobRow.created_at).desc(), col(JobRow.id).desc()).limit(limit)
    return list(session.exec(query.where(JobRow.agent_id == agent_id) if agent_id else query))


def view(session: Session, row: JobRow) -> dict[str, object]:
    """Describe a job to anybody. A draw runs on private prompts: of what its server said, nothing is shown."""
    is_draw = row.kind == "draw"
    shown: dict[str, object] = {
        "job_id": row.id,
        "kind": row.kind,
        "agent_id": row.agent_id,
        "hf_user": row.user,
        "state": row.state,
        "stage": row.stage or row.state,
        "status": old_word(State(row.state)),
        "place": queue.place(session, row),
        "progress": {"done": row.progress_done, "total": row.progress_total},
        "hardware": row.hardware,
        "content_hash": row.content_hash,
        "created_at": to_iso_ms(row.created_at),
        "started_at": to_iso_ms(row.started_at) if row.started_at else None,
        "finished_at": to_iso_ms(row.finished_at) if row.finished_at else None,
        "fault": row.fault,
        "code": row.code,
    }
    if is_draw:
        return {**shown, "draw": row.draw, "volley_id": row.volley_id}
    return {
        **shown,
        "message": row.message,
        "cancel_requested": row.cancel_requested,
        "submission_bucket": row.submission_bucket,
        "submission_prefix": row.submission_prefix,
        "run_bucket": row.run_bucket,
        "run_prefix": row.run_prefix,
        "summary": row.summary,
        "times": row.times,
    }
