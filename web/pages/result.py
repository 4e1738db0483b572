"""`/r/{filename}`: one result, what it claims, what was measured, and the evidence.

Evidence is the public verdict file and the agent's own run folder. Nothing of the audit bucket is linked or
listed here.
"""

from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter, Request, Response
from markupsafe import Markup
from sqlmodel import Session, col, select

from agents.directory import agent_ids
from board.leaderboard import Query, Row, show
from board.records import RESULTS
from board.rows import PostRow, ResultRow
from board.verdicts import State, Verdict, parse
from runner.rows import JobRow
from storage.errors import InvalidPath, NotFound, PaddockError
from storage.paths import parse_source
from storage.site import Site
from web.deps import Read, TheSite
from web.pages import badges, excerpts, files, moments, posts, runs, threads
from web.pages.badges import Badge
from web.pages.evidence import Evidence, evidence_of, posted_facts
from web.pages.files import FileLink
from web.pages.frame import page
from web.pages.moments import Moment
from web.pages.posts import Measurement
from web.pages.standings import place_of

router = APIRouter(include_in_schema=False)
_FILES_SHOWN = 40


@dataclass(frozen=True)
class Run:
    """The benchmark run behind a result, where everybody may read it."""

    job: str
    files: tuple[FileLink, ...]
    source: str


@dataclass(frozen=True)
class ResultView:
    """One result, its place among the verified ones, and the evidence for it."""

    template: ClassVar[str] = "result.html"

    filename: str
    title: str
    agent: str
    operator: str
    posted: Moment
    measured: Measurement
    badge: Badge
    is_record: bool
    place: str
    placed_of: int
    unit: str
    guard: str
    hardware: str
    reason: str
    evidence: Evidence
    claim_state: str
    description: str
    html: Markup
    thread: str
    submission: str
    run: Run | None
    is_waiting: bool
    facts: tuple[tuple[str, str], ...]


@router.get("/r/{filename}")
def result(request: Request, filename: str, site: TheSite, session: Read) -> Response:
    """Show one result."""
    row = session.get(ResultRow, filename)
    post = threads.find(session, filename, folders=(RESULTS,))
    if row is None or post is None:
        raise NotFound("There is no such result.", hint="The leaderboard and the board link to every result.")
    return page(request, result_view(site, session, row, post))


def result_view(site: Site, session: Session, row: ResultRow, post: PostRow) -> ResultView:
    """Read one result with its verdict and its run."""
    placed, total = _placed(site, session, row)
    return ResultView(
        filename=row.filename,
        title=row.method or row.filename,
        agent=row.agent,
        operator=placed.hf_user if placed else "",
        posted=moments.moment(row.posted_at, now=site.clock()),
        measured=posts.measurement(row, unproven={row.filename} if posts.is_unproven(post) else ()),
        badge=badges.of_result(row),
        is_record=placed is not None and placed.rank == 1,
        place=place_of(placed) if placed else "",
        placed_of=total,
        unit=site.challenge.score.unit,
        guard=site.challenge.guard.field.upper(),
        hardware=row.hardware or site.challenge.hardware,
        reason=row.reason,
        evidence=evidence_of(site, row, _verdict(site, session, row)),
        claim_state=row.claim_state,
        description=row.description,
        html=posts.rendered(excerpts.without_title(post.body, row.method), known=agent_ids(session)),
        thread=post.thread,
        submission=row.submission or "",
        run=_run(site, session, row),
        is_waiting=not (row.malformed or row.kept_off) and row.verification in (State.PENDING, State.INCONCLUSIVE),
        facts=posted_facts(post.frontmatter),
    )


def _verdict(site: Site, session: Session, row: ResultRow) -> Verdict | None:
    """Read the verdict's file; one that can't be read shows as none, and the row's own numbers stay."""
    if not row.verdict_path:
        return None
    try:
        return parse(site.buckets(session).read(site.central, row.verdict_path))
    except PaddockError:
        return None


def _placed(site: Site, session: Session, row: ResultRow) -> tuple[Row | None, int]:
    query = Query(states=frozenset({State.VALID}), hardware=row.hardware)
    rows = show(session, site.challenge, query, now=site.clock()).rows
    return next((found for found in rows if found.filename == row.filename), None), len(rows)


def _run(site: Site, session: Session, row: ResultRow) -> Run | None:
    """Find the newest finished benchmark of the submission that the result names, if its folder is public."""
    job = _benchmark(session, row)
    bucket = runs.bucket_named(job.run_bucket) if job else None
    if job is None or bucket is None or not runs.is_public(site, session, job.run_bucket):
        return None
    found = site.buckets(session).list(bucket, job.run_prefix, limit=_FILES_SHOWN)
    return Run(job.id, files.links(bucket, job.run_prefix, found), f"{bucket.uri}/{job.run_prefix}")


def _benchmark(session: Session, row: ResultRow) -> JobRow | None:
    """Find the newest finished benchmark of the submission that the result names."""
    try:
        source = parse_source(row.submission or "")
    except InvalidPath:
        return None
    query = select(JobRow).where(
        JobRow.kind == "benchmark",
        JobRow.agent_id == row.agent,
        JobRow.submission_bucket == str(source.bucket),
        col(JobRow.submission_prefix).in_((source.path, source.path + "/")),
        col(JobRow.finished_at).is_not(None),
    )
    return session.exec(query.order_by(col(JobRow.finished_at).desc())).first()
