"""Jobs as lines of a list: what runs, what waits, what ended. Shared by the board, the queue and agents' pages.

A verification draw shows only that it runs: its folder, its progress, its numbers and its failure stay in
the audit bucket. A submission in a private bucket is named by its agent alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, select

from runner.rows import JobRow, VolleyRow
from runner.states import LEASED
from storage.errors import InvalidPath
from storage.paths import BucketName, parse_bucket
from storage.site import Site
from web.pages import badges, figures, moments
from web.pages.badges import Badge
from web.pages.moments import Moment

_STAGE_WORDS = {
    "queued": "waiting",
    "preparing": "preparing its environment",
    "serving": "starting the server",
    "measuring": "measuring",
}


@dataclass(frozen=True)
class JobLine:
    """One job in a list; `percent` is None where there is nothing to show."""

    id: str
    title: str
    agent: str
    purpose: str
    badge: Badge
    stage: str
    percent: int | None
    at: Moment
    waited: str
    score: str
    code: str


def is_public(site: Site, session: Session, bucket: str) -> bool:
    """Tell whether anybody may read `bucket`. The audit bucket never counts as public."""
    name = bucket_named(bucket)
    if name is None or name == site.audit:
        return False
    found = site.buckets(session).find(name)
    return found is not None and not found.private


def bucket_named(text: str) -> BucketName | None:
    """Read a bucket's name as a row holds it, or return None."""
    try:
        return parse_bucket(text)
    except InvalidPath:
        return None


def running(session: Session) -> Sequence[JobRow]:
    """List the jobs that hold a worker, oldest first."""
    query = select(JobRow).where(col(JobRow.state).in_(LEASED))
    return session.exec(query.order_by(col(JobRow.created_at), col(JobRow.id))).all()


def waiting(session: Session) -> Sequence[JobRow]:
    """List the queued jobs in the order they came."""
    query = select(JobRow).where(JobRow.state == "queued")
    return session.exec(query.order_by(col(JobRow.created_at), col(JobRow.id))).all()


def ended(session: Session, *, limit: int, agent: str | None = None) -> Sequence[JobRow]:
    """List finished jobs, newest first."""
    query = select(JobRow).where(col(JobRow.finished_at).is_not(None))
    if agent is not None:
        query = query.where(JobRow.agent_id == agent)
    return session.exec(query.order_by(col(JobRow.finished_at).desc()).limit(limit)).all()


def lines(site: Site, session: Session, jobs: Iterable[JobRow]) -> tuple[JobLine, ...]:
    """Describe jobs for a list; what several of them share is looked up once."""
    listed, now = list(jobs), site.clock()
    buckets = {job.submission_bucket for job in listed if job.kind == "benchmark"}
    public = {bucket for bucket in buckets if is_public(site, session, bucket)}
    named = {job.volley_id for job in listed if job.volley_id}
    volleys = {row.id: row for row in session.exec(select(VolleyRow).where(col(VolleyRow.id).in_(named)))}
    return tuple(
        line(site, job, volleys.get(job.volley_id or ""), is_shown=job.submission_bucket in public, now=now)
        for job in listed
    )


def line(site: Site, job: JobRow, volley: VolleyRow | None, *, is_shown: bool, now: datetime) -> JobLine:
    """Describe one job for a list; `is_shown` tells whether anybody may read its submission."""
    shown = is_shown and job.kind == "benchmark"
    return JobLine(
        id=job.id,
        title=title_of(job, public=shown),
        agent=job.agent_id,
        purpose=purpose_of(job, volley),
        badge=badges.of_job(job.state),
        stage=_STAGE_WORDS.get(job.state, job.state.replace("_", " ")),
        percent=percent_of(job) if job.kind == "benchmark" else None,
        at=moments.moment(job.finished_at or job.started_at or job.created_at, now=now),
        waited=moments.span((job.started_at or now) - job.created_at),
        score=score_of(site, job) if shown else "",
        code=job.code if shown else "",
    )


def title_of(job: JobRow, *, public: bool) -> str:
    """Name a job by its submission's folder, or by its kind where that isn't public."""
    if job.kind != "benchmark":
        return "Verification draw"
    return job.submission_prefix.rstrip("/").rpartition("/")[2] if public else "A private submission"


def purpose_of(job: JobRow, volley: VolleyRow | None) -> str:
    """Say why a job runs; `volley` is the verification that a draw belongs to."""
    if job.kind == "benchmark":
        return "benchmark"
    if volley is None or job.draw is None:
        return "verification"
    return f"verification, draw {job.draw} of {volley.planned}"


def percent_of(job: JobRow) -> int | None:
    """Give a measuring job's progress in per cent."""
    if job.state != "measuring" or job.progress_total <= 0:
        return None
    return max(0, min(100, round(100 * job.progress_done / job.progress_total)))


def score_of(site: Site, job: JobRow) -> str:
    """Give a finished benchmark's score, or an empty string."""
    value = (job.summary or {}).get(site.challenge.score.field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return f"{figures.speed(float(value))} {site.challenge.score.unit}"
