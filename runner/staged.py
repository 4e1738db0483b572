"""Submissions that nobody asked to run: noticed in scratch buckets, benchmarked, and their results posted.

A folder `submissions/{agent}/{name}/` with a manifest, in the agent's own scratch bucket, is taken once it has been
quiet for a while and its content has no job of that agent yet. The owner's quota pays.
"""

import logging
from collections.abc import Iterator
from datetime import timedelta

from sqlmodel import Session, col, select

from agents.rows import AgentRow
from agents.scopes import Proof
from agents.tokens import Caller
from board import results
from board.changes import take_turn
from runner import jobs, snapshots, verification
from runner.jobs import Order, Refusal
from runner.manifests import FILE
from runner.rows import JobRow
from runner.snapshots import content_hash
from runner.states import State
from storage.buckets import BucketNotFound, Put, StoredFile
from storage.clock import to_iso_ms
from storage.database import reading, writing
from storage.errors import PaddockError, TooMany
from storage.frontmatter import Value, serialise
from storage.paths import BucketName, Source
from storage.site import Site

_log = logging.getLogger(__name__)
_RESULT = "result.md"


def scan(site: Site, refusal: Refusal) -> list[str]:
    """Queue a benchmark for every new staged submission whose owner has quota left; return the job ids."""
    if not site.challenge.auto_benchmark:
        return []
    with reading(site.engine) as session:
        found = [(agent.agent_id, agent.hf_user, source) for agent, source in _candidates(site, session)]
    queued = [_queue(site, agent_id, user, source, refusal) for agent_id, user, source in found]
    return [job_id for job_id in queued if job_id is not None]


def _candidates(site: Site, session: Session) -> Iterator[tuple[AgentRow, Source]]:
    for agent in session.exec(select(AgentRow).order_by(AgentRow.agent_id)):
        bucket = site.scratch(agent.agent_id)
        found = site.buckets(session).find(bucket)
        if found is None or found.owner != agent.hf_user:
            continue
        top = f"submissions/{agent.agent_id}"
        for name, files in _folders(_listed(site, session, bucket, top), top).items():
            source = Source(bucket, f"{top}/{name}")
            if _is_settled(site, files, source) and _is_new(session, agent, files, source):
                yield agent, source


def _listed(site: Site, session: Session, bucket: BucketName, top: str) -> list[StoredFile]:
    """List a bucket's files; one that went since it was found has none, and the others get their turn."""
    try:
        return site.buckets(session).list(bucket, top)
    except BucketNotFound:
        _log.warning("the bucket %s went while its submissions were looked for", bucket)
        return []


def _folders(files: list[StoredFile], top: str) -> dict[str, list[StoredFile]]:
    found: dict[str, list[StoredFile]] = {}
    for file in files:
        name, slash, _ = file.path.removeprefix(f"{top}/").partition("/")
        if slash:
            found.setdefault(name, []).append(file)
    return found


def _is_settled(site: Site, files: list[StoredFile], source: Source) -> bool:
    quiet = site.clock() - timedelta(seconds=site.settings.staged_settle)
    has_manifest = any(file.path == f"{source.path}/{FILE}" for file in files)
    return has_manifest and max(file.uploaded_at for file in files) <= quiet


def _is_new(session: Session, agent: AgentRow, files: list[StoredFile], source: Source) -> bool:
    inner = len(source.path) + 1
    content = content_hash([(file.path[inner:], file.digest, file.size) for file in files])
    known = select(JobRow.id).where(
        JobRow.agent_id == agent.agent_id, JobRow.content_hash == content, JobRow.kind == "benchmark"
    )
    return session.exec(known).first() is None


def _queue(site: Site, agent_id: str, user: str, source: Source, refusal: Refusal) -> str | None:
    try:
        with writing(site.engine) as session:
            snapshot = snapshots.look(site, session, source)
            order = Order(
                agent_id=agent_id,
                submission_prefix=source.path,
                run_prefix=f"runs/auto-{snapshot.content_hash[:12]}",
                posts_result=True,
            )
            return jobs.request_staged(site, session, user, order, refusal).row.id
    except PaddockError as error:
        _log.debug("staged submission %s is not queued: %s", source, error.message)
        return None
    except Exception:  # noqa: BLE001 - one submission that can't be looked at must not keep the others from it
        _log.exception("staged submission %s is not queued", source)
        return None


def post_results(site: Site) -> list[str]:
    """Post the result of every completed staged benchmark that has none yet, and open its verification."""
    with reading(site.engine) as session:
        waiting = select(JobRow.id).where(JobRow.state == State.COMPLETED, col(JobRow.posts_result))
        job_ids = list(session.exec(waiting.order_by(JobRow.id)))
    posted = [_post(site, job_id) for job_id in job_ids]
    return [filename for filename in posted if filename is not None]


def _post(site: Site, job_id: str) -> str | None:
    """Post one job's result; one that can't be posted is let go, so that it never keeps the others waiting."""
    try:
        with writing(site.engine) as session:
            return _promote(site, session, session.get_one(JobRow, job_id))
    except TooMany:
        return None  # the bucket's promotions have a limit; the next tick tries again
    except PaddockError as error:
        _log.warning("the result of job %s can't be posted: %s", job_id, error.message)
    except Exception:  # noqa: BLE001 - a fault of ours with one result
        _log.exception("the result of job %s can't be posted", job_id)
        return None  # the next tick tries again
    with writing(site.engine) as session:
        session.get_one(JobRow, job_id).posts_result = False
    return None


def _promote(site: Site, session: Session, row: JobRow) -> str:
    """Write the result into the run's folder, promote it as its owner would, and open its verification."""
    row.posts_result = False
    session.add(row)
    session.flush()
    take_turn(session)  # before the bucket's locks, as a job's end does: else two writers deadlock
    bucket = site.scratch(row.agent_id)
    path = f"{row.run_prefix}/{_RESULT}"
    text = serialise(_frontmatter(site, session, row), _body(row))
    site.buckets(session).apply(bucket, [Put(path, text.encode(), "text/markdown; charset=utf-8")])
    owner = Caller(row.user, "runner", proof=Proof.SERVER)
    filename = results.post(site, session, owner, f"{bucket.uri}/{path}").filename
    verification.open_for(site, session, filename)
    return filename


def _frontmatter(site: Site, session: Session, row: JobRow) -> dict[str, Value]:
    manifest = snapshots.read_manifest(site, session, row.content_hash)
    summary = row.summary or {}
    bucket = site.scratch(row.agent_id)
    return {
        "type": "agent",
        site.challenge.score.field: _plain(summary.get("score")),
        site.challenge.guard.field: _plain(summary.get("guard")),
        "method": manifest.name,
        "status": "agent-run",
        "description": manifest.description or manifest.name,
        "hardware": row.hardware,
        "submission": f"{bucket.uri}/{row.submission_prefix}",
        "artifacts": f"{bucket.uri}/{row.run_prefix}",
    }


def _plain(value: object) -> Value:
    return round(value, 6) if isinstance(value, float) else None


def _body(row: JobRow) -> str:
    at = to_iso_ms(row.finished_at) if row.finished_at else ""
    return f"Benchmarked by the runner from the staged submission (job {row.id}, finished {at}).\n"
