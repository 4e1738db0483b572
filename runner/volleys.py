"""A volley: a fixed, disclosed number of draws of one content, each started draw kept whatever became of it."""

import hashlib
import hmac
import math

from sqlmodel import Session, col, select

from runner import queue
from runner.gates import Outcome
from runner.rows import JobRow, VolleyRow
from runner.states import ENDED, Fault, State
from storage.ids import new_id
from storage.site import Site

WAITING = "waiting"
"""The content is kept; its draws are queued once nothing stands in the way any more."""
OPEN = "open"
WITHDRAWN = "withdrawn"
"""The result was taken back before a draw had started."""
MOST_REPLACED = 2
"""Draws of one volley that are drawn anew when they failed through us."""

_SEEDS = 2**63
"""Too many to try: whoever finds the seed in the warm-up prompts knows which scored records are decoys."""


def enter(
    site: Site, session: Session, *, result: str, agent_id: str, user: str, content_hash: str, bucket: str, prefix: str
) -> VolleyRow:
    """Make a waiting volley: its size is fixed from here on, before the first draw."""
    volley = VolleyRow(
        id=new_id("vol"),
        result=result,
        agent_id=agent_id,
        user=user,
        content_hash=content_hash,
        submission_bucket=bucket,
        submission_prefix=prefix,
        planned=site.challenge.verification.draws,
        state=WAITING,
        rule_version=site.challenge.verification.rule_version,
        opened_at=site.clock(),
    )
    session.add(volley)
    session.flush()
    return volley


def queue_draws(site: Site, session: Session, volley: VolleyRow) -> None:
    """Queue all draws of a volley."""
    for draw in range(1, volley.planned + 1):
        add_draw(site, session, volley, draw)


def add_draw(site: Site, session: Session, volley: VolleyRow, draw: int) -> JobRow:
    """Queue one draw; its run folder lies in the audit bucket."""
    job_id = new_id("job")
    row = JobRow(
        id=job_id,
        kind="draw",
        state=State.QUEUED,
        agent_id=volley.agent_id,
        user=volley.user,
        submission_bucket=volley.submission_bucket,
        submission_prefix=volley.submission_prefix,
        content_hash=volley.content_hash,
        run_bucket=str(site.audit),
        run_prefix=f"runs/{job_id}",
        hardware=site.challenge.hardware,
        volley_id=volley.id,
        draw=draw,
        created_at=site.clock(),
    )
    session.add(row)
    session.flush()
    queue.announce(session, row)
    return row


def find_unfinished(session: Session, result: str) -> VolleyRow | None:
    """Return the volley of a result that waits or still has draws to come, or None; nobody else can change it."""
    unfinished = col(VolleyRow.state).in_((WAITING, OPEN))
    asked = select(VolleyRow).where(VolleyRow.result == result, unfinished)
    return session.exec(asked.with_for_update()).first()


def find_sibling(session: Session, volley: VolleyRow) -> VolleyRow | None:
    """Return an open volley of the same content, or None."""
    same = VolleyRow.content_hash == volley.content_hash
    return session.exec(select(VolleyRow).where(same, VolleyRow.state == OPEN, VolleyRow.id != volley.id)).first()


def waiting(session: Session) -> list[VolleyRow]:
    """List the volleys that wait, oldest first."""
    return list(session.exec(select(VolleyRow).where(VolleyRow.state == WAITING).order_by(col(VolleyRow.id))))


def draws_of(session: Session, volley: VolleyRow) -> list[JobRow]:
    """List a volley's draws in their order."""
    return list(session.exec(select(JobRow).where(JobRow.volley_id == volley.id).order_by(col(JobRow.draw))))


def earlier_draws(site: Site, session: Session, volley: VolleyRow) -> list[JobRow]:
    """List the ended draws of the same content, on the same hardware, of volleys that were closed before this one."""
    query = (
        select(JobRow)
        .join(VolleyRow, col(JobRow.volley_id) == col(VolleyRow.id))
        .where(
            VolleyRow.content_hash == volley.content_hash,
            VolleyRow.id != volley.id,
            VolleyRow.rule_version == volley.rule_version,
            JobRow.hardware == site.challenge.hardware,
            col(VolleyRow.state).not_in((WAITING, OPEN, WITHDRAWN)),
            col(JobRow.state).in_(sorted(ENDED)),
        )
        .order_by(col(JobRow.created_at), col(JobRow.draw))
    )
    return list(session.exec(query))


def outcome_of(row: JobRow) -> Outcome:
    """Read a draw's outcome from its row."""
    summary = row.summary or {}
    return Outcome(
        state=State(row.state),
        fault=Fault(row.fault),
        code=row.code,
        score=_number(summary.get("score")),
        guard=_number(summary.get("guard")),
        tokens=int(_number(summary.get("tokens")) or 0),
        asked_tokens=int(_number(summary.get("asked_tokens")) or 0),
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def seed_of(secret: bytes, volley_id: str, draw: int) -> int:
    """Derive a draw's seed, which nobody without the secret can foresee."""
    digest = hmac.new(secret, f"{volley_id}:{draw}".encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") % _SEEDS


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)
