"""`/jobs/{id}`: one run, its stages, its progress, its end."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from sqlmodel import Session

from agents import audit
from agents.scopes import Scope
from agents.tokens import Caller
from runner import jobs, queue
from runner.rows import JobRow, VolleyRow
from runner.run_files import LOGS
from runner.states import ENDED, Fault, State
from storage.errors import NotFound
from storage.site import Site
from web.deps import Read, TheSite, Write, require
from web.forms import FormVisit
from web.last_use import peer
from web.pages import badges, figures, files, logs, moments, runs
from web.pages.badges import Badge
from web.pages.files import FileLink
from web.pages.frame import page
from web.pages.logs import Log
from web.pages.moments import Moment
from web.sessions import MaybeSignedIn

router = APIRouter(include_in_schema=False)

_STAGES = ("queued", "preparing", "serving", "measuring", "completed")
_PARTS = {"preparing": ("snapshot", "install"), "serving": ("start",), "measuring": ("measure", "stop", "collect")}
_LOG_BYTES = 1_000_000
_FILES_SHOWN = 60


@dataclass(frozen=True)
class Stage:
    """One step of the bar; `look` is `done`, `now` or empty. `note` says how long it took."""

    name: str
    look: str
    note: str


@dataclass(frozen=True)
class Failure:
    """Why a job ended without a number: a stable code, a sentence, and whose fault it was."""

    code: str
    message: str
    ours: bool


@dataclass(frozen=True)
class JobView:
    """One job. A draw shows no progress, failure, facts, files or log."""

    template: ClassVar[str] = "job.html"

    id: str
    title: str
    agent: str
    purpose: str
    badge: Badge
    created: Moment
    is_live: bool
    place: int | None
    stages: tuple[Stage, ...]
    percent: int | None
    is_draw: bool
    result: str
    failure: Failure | None
    facts: tuple[tuple[str, str], ...]
    facts_more: tuple[tuple[str, str], ...]
    files: tuple[FileLink, ...]
    log: Log | None
    log_href: str
    can_cancel: bool
    is_stopping: bool


@router.get("/jobs/{job_id}")
def job(request: Request, job_id: str, site: TheSite, session: Read, viewer: MaybeSignedIn) -> Response:
    """Show one job."""
    row = session.get(JobRow, job_id)
    if row is None:
        raise NotFound("There is no such job.", hint="/queue lists the jobs that run, wait or ended lately.")
    return page(request, job_view(site, session, row, viewer=viewer))


def form_runner(visit: FormVisit) -> Caller:
    """Who sent the form, if they may start and cancel benchmarks.

    Raises:
        SignInNeeded, ForgedForm, ScopeMissing: they may not.
    """
    return require(visit.caller, Scope.RUN)


@router.post("/jobs/{job_id}/cancel")
def cancel(
    request: Request, job_id: str, site: TheSite, session: Write, caller: Annotated[Caller, Depends(form_runner)]
) -> Response:
    """End a waiting run at once; one under way ends within moments."""
    row = jobs.cancel(site, session, caller, job_id)
    audit.record(session, caller=caller, action="jobs.cancel", target=row.id, now=site.clock(), origin=peer(request))
    return RedirectResponse(f"/jobs/{row.id}", 303)


def job_view(site: Site, session: Session, row: JobRow, *, viewer: Caller | None = None) -> JobView:
    """Read one job as `viewer` sees it, with its files where everybody may see them."""
    now = site.clock()
    is_draw = row.kind != "benchmark"
    shown = not is_draw and runs.is_public(site, session, row.submission_bucket)
    run_files = _run_files(site, session, row) if not is_draw else ()
    volley = session.get(VolleyRow, row.volley_id) if row.volley_id else None
    return JobView(
        id=row.id,
        title=runs.title_of(row, public=shown),
        agent=row.agent_id,
        purpose=runs.purpose_of(row, volley),
        badge=badges.of_job(row.state),
        created=moments.moment(row.created_at, now=now),
        is_live=row.finished_at is None,
        place=queue.place(session, row),
        stages=stages_of(row, now=now),
        percent=None if is_draw else runs.percent_of(row),
        is_draw=is_draw,
        result=volley.result if volley else "",
        failure=failure_of(row) if shown else None,
        facts=_facts(site, row) if shown else (),
        facts_more=_more(row, shown=shown),
        files=run_files,
        log=_log(site, session, row, run_files),
        log_href=next((file.href for file in run_files if file.name == LOGS), ""),
        can_cancel=_may_cancel(row, viewer),
        is_stopping=row.cancel_requested and row.finished_at is None,
    )


def _may_cancel(row: JobRow, viewer: Caller | None) -> bool:
    is_over = row.finished_at is not None or row.cancel_requested
    if viewer is None or is_over or row.kind != "benchmark" or Scope.RUN not in viewer.scopes:
        return False
    return viewer.user == row.user or viewer.is_organizer


def stages_of(row: JobRow, *, now: datetime) -> tuple[Stage, ...]:
    """Lay a job's state on the five steps; a job that ended early stops at the step it had reached."""
    reached = _reached(row)
    return tuple(
        Stage(_name(stage, row, at), _look(row, at, reached), _note(row, stage, at, reached, now))
        for at, stage in enumerate(_STAGES)
    )


def _reached(row: JobRow) -> int:
    if row.state in _STAGES:
        return _STAGES.index(row.state)
    return _STAGES.index(row.stage) if row.stage in _STAGES else 1 if row.started_at else 0


def _name(stage: str, row: JobRow, at: int) -> str:
    if at == len(_STAGES) - 1 and row.finished_at is not None and row.state not in _STAGES:
        return badges.of_job(row.state).word
    return "Done" if stage == "completed" else stage.capitalize()


def _look(row: JobRow, at: int, reached: int) -> str:
    if row.state == "completed" or at < reached:
        return "done"
    if row.finished_at is not None:
        return "broken" if at in (reached, len(_STAGES) - 1) else ""
    return "now" if at == reached else ""


def _note(row: JobRow, stage: str, at: int, reached: int, now: datetime) -> str:
    if stage == "queued":
        return moments.span((row.started_at or row.finished_at or now) - row.created_at)
    if at <= reached and (took := [row.times[part] for part in _PARTS.get(stage, ()) if part in row.times]):
        return moments.span(sum(took))
    if stage == "completed" and row.finished_at is not None:
        return f"after {moments.span(row.finished_at - (row.started_at or row.created_at))}"
    if at == reached and row.finished_at is None and row.started_at is not None:
        return "running"
    return ""


def failure_of(row: JobRow) -> Failure | None:
    """Name a job's failure, or return None while there is none."""
    if row.state not in ENDED or row.state == State.COMPLETED:
        return None
    return Failure(row.code or row.state, row.message or "The run ended without a number.", row.fault == Fault.OURS)


def _facts(site: Site, row: JobRow) -> tuple[tuple[str, str], ...]:
    guard = (row.summary or {}).get(site.challenge.guard.field)
    found = [("Speed, public prompts", runs.score_of(site, row))]
    if isinstance(guard, int | float) and not isinstance(guard, bool):
        found.append((site.challenge.guard.field.upper(), figures.perplexity(float(guard))))
    return tuple((name, value) for name, value in found if value)


def _more(row: JobRow, *, shown: bool) -> tuple[tuple[str, str], ...]:
    found = [("Hardware", row.hardware)]
    if shown:
        found += [("Submission", f"hf://buckets/{row.submission_bucket}/{row.submission_prefix}")]
        found += [("Snapshot", row.content_hash)]
    return tuple(found)


def _run_files(site: Site, session: Session, row: JobRow) -> tuple[FileLink, ...]:
    bucket = runs.bucket_named(row.run_bucket)
    if bucket is None or not runs.is_public(site, session, row.run_bucket):
        return ()
    found = site.buckets(session).list(bucket, row.run_prefix, limit=_FILES_SHOWN)
    return files.links(bucket, row.run_prefix, found)


def _log(site: Site, session: Session, row: JobRow, run_files: tuple[FileLink, ...]) -> Log | None:
    bucket = runs.bucket_named(row.run_bucket)
    there = any(file.name == LOGS and file.size <= _LOG_BYTES for file in run_files)
    if bucket is None or not there:
        return None
    path = f"{row.run_prefix.rstrip('/')}/{LOGS}"
    return logs.tail(site.buckets(session).read(bucket, path, max_bytes=_LOG_BYTES))
