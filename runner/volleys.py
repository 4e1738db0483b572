"""A volley: a fixed, disclosed number of draws of one content, each started draw kept whatever became of it."""

import hashlib
import hmac

from sqlmodel import Session, col, select

from runner.gates import Outcome
from runner.rows import JobRow, VolleyRow
from runner.states import ENDED, Fault, State
from storage.ids import new_id
from storage.site import Site

OPEN = "open"
MOST_REPLACED = 2
"""Draws of one volley that are drawn anew when they failed through us."""

_SEEDS = 10**9


def open_volley(
    site: Site, session: Session, *, result: str, agent_id: str, user: str, content_hash: str, bucket: str, prefix: str
) -> VolleyRow:
    """Open a volley and queue all its draws."""
    volley = VolleyRow(
        id=new_id("vol"),
        result=result,
        agent_id=agent_id,
        user=user,
        content_hash=content_hash,
        submission_bucket=bucket,
        submission_prefix=prefix,
        planned=site.challenge.verification.draws,
        state=OPEN,
        rule_version=site.challenge.verification.rule_version,
        opened_at=site.clock(),
    )
    session.add(volley)
    session.flush()
    for draw in range(1, volley.planned + 1):
        add_draw(site, session, volley, draw)
    return volley


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
    return row


def find_open(session: Session, result: str) -> VolleyRow | None:
    """Return the volley of a result that still has draws to come, or None."""
    return session.exec(select(VolleyRow).where(VolleyRow.result == result, VolleyRow.state == OPEN)).first()


def draws_of(session: Session, volley: VolleyRow) -> list[JobRow]:
    """List a volley's draws in their order."""
    return list(session.exec(select(JobRow).where(JobRow.volley_id == volley.id).order_by(col(JobRow.draw))))


def earlier_draws(session: Session, volley: VolleyRow) -> list[JobRow]:
    """List the ended draws of the same content, on the same hardware, of volleys that were closed before this one."""
    query = (
        select(JobRow)
        .join(VolleyRow, col(JobRow.volley_id) == col(VolleyRow.id))
        .where(
            VolleyRow.content_hash == volley.content_hash,
            VolleyRow.id != volley.id,
            VolleyRow.rule_version == volley.rule_version,
            VolleyRow.state != OPEN,
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
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
