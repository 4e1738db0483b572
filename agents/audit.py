"""One line per write: who did what to what, with which proof, from where."""

from datetime import datetime

from sqlmodel import Session

from agents.rows import AuditRow
from agents.tokens import Caller

NO_PROOF = "none"


def record(
    session: Session, *, caller: Caller | None, action: str, target: str, now: datetime, origin: str = ""
) -> None:
    """Note a write of `caller`, or of somebody without a token."""
    actor = caller.user if caller else ""
    proof = f"token:{caller.token_id}" if caller else NO_PROOF
    session.add(AuditRow(at=now, actor=actor, proof=proof, origin=origin, action=action, target=target))
