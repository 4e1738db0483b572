"""`/v1/jobs`: ask for a run, look at it, cancel it."""

import math
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from pydantic import BaseModel
from sqlmodel import Session

from agents import audit
from agents.tokens import Caller
from runner import jobs, queue, run_files
from runner.jobs import Launched, Order
from runner.launchers.contract import launching
from runner.launchers.local import LocalLauncher
from runner.rows import JobRow
from storage.paths import parse_bucket
from storage.site import Site
from web.api.params import Peer
from web.deps import MaybeCaller, Read, TheRunner, TheSite, Write, origin

MAX_REQUEST_BYTES = 100_000

_PRIVATE = ("code", "message", "content_hash", "submission_prefix", "run_prefix", "summary", "times")

router = APIRouter(tags=["jobs"], max_body_size=MAX_REQUEST_BYTES)
_MOST = 1000


class RunRequest(BaseModel):
    """What a benchmark is asked for with."""

    agent_id: str
    submission_prefix: str
    run_prefix: str


@router.post("/v1/jobs:run", status_code=202)
def run(
    body: RunRequest,
    request: Request,
    site: TheSite,
    session: Write,
    caller: TheRunner,
    peer: Peer,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> dict[str, object]:
    """Queue a benchmark of a submission in the agent's own scratch bucket."""
    order = Order(**body.model_dump(), idempotency_key=idempotency_key)
    with launching():
        launched = jobs.request(site, session, caller, order, LocalLauncher(site.settings).refusal)
    audit.record(session, caller=caller, action="jobs.run", target=launched.row.id, now=site.clock(), origin=peer)
    return _launched(site, launched, origin(request))


@router.get("/v1/jobs")
def listing(
    site: TheSite,
    session: Read,
    caller: MaybeCaller,
    agent: str | None = None,
    limit: int = 10,
) -> dict[str, object]:
    """List jobs, newest first; 0 or less lists as many as there are, up to a thousand."""
    rows = jobs.newest(session, limit=limit if 0 < limit <= _MOST else _MOST, agent_id=agent)
    return {"count": len(rows), "items": [_shown(site, session, caller, row) for row in rows]}


@router.get("/v1/jobs/{job_id}")
def one(job_id: str, site: TheSite, session: Read, caller: MaybeCaller, response: Response) -> dict[str, object]:
    """Show a job: its state, its place in the queue, how it ended."""
    response.headers["Cache-Control"] = "no-store"
    return _shown(site, session, caller, queue.get_job(session, job_id))


@router.post("/v1/jobs/{job_id}:cancel")
def cancel(job_id: str, site: TheSite, session: Write, caller: TheRunner, peer: Peer) -> dict[str, object]:
    """End a waiting run at once; one under way ends within moments."""
    row = jobs.cancel(site, session, caller, job_id)
    audit.record(session, caller=caller, action="jobs.cancel", target=row.id, now=site.clock(), origin=peer)
    return jobs.view(session, row)


def _shown(site: Site, session: Session, caller: Caller | None, row: JobRow) -> dict[str, object]:
    """Describe a job; what it ran and how that went is as private as the bucket that its submission lies in."""
    shown = jobs.view(session, row)
    is_owner = caller is not None and (caller.user == row.user or caller.is_organizer)
    if row.kind == "benchmark" and not is_owner:
        bucket = site.buckets(session).find(parse_bucket(row.submission_bucket))
        if bucket is None or bucket.private:
            shown |= dict.fromkeys(_PRIVATE)
    return shown


def _launched(site: Site, launched: Launched, base: str) -> dict[str, object]:
    row, harness = launched.row, site.challenge.harness
    folder = f"hf://buckets/{row.run_bucket}/{row.run_prefix}"
    return {
        "agent_id": row.agent_id,
        "hf_user": row.user,
        "submission_bucket": row.submission_bucket,
        "submission_prefix": row.submission_prefix,
        "run_bucket": row.run_bucket,
        "run_prefix": row.run_prefix,
        "job_id": row.id,
        "job_url": f"{base}/v1/jobs/{row.id}",
        "status": "launched",
        "timeout_minutes": math.ceil((harness.startup_timeout_s + harness.run_timeout_s) / 60),
        "status_file": f"{folder}/{run_files.STATUS}",
        "logs_file": f"{folder}/{run_files.LOGS}",
        "quota": {
            "agent_remaining": launched.quota.agent_remaining,
            "user_remaining": launched.quota.user_remaining,
        },
        "message": f"Queued. Follow it with GET /v1/jobs/{row.id}, or read {folder}/{run_files.STATUS}.",
    }
