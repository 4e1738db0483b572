"""What becomes of a verification whose result its author takes back."""

from collections.abc import Sequence

from sqlmodel import Session, col, select

from agents.tokens import Caller
from board import moderation_acts
from board.records import RESULTS
from board.rows import ModerationRow
from runner import endings, verification, volleys
from runner.rows import JobRow, VolleyRow
from runner.states import State
from storage.site import Site

_REASON = "Its author took the result back before a draw of it had started, so nothing is measured."


def retract(site: Site, session: Session, caller: Caller, filename: str, reason: str, *, folder: str) -> ModerationRow:
    """Take back a record of the caller's own, and with a result its verification, unless that has begun.

    Raises:
        As `board.moderation_acts.retract`.
    """
    if folder != RESULTS:
        return moderation_acts.retract(site, session, caller, filename, reason, folder=folder)
    volley, draws = _lock(session, filename)
    row = moderation_acts.retract(site, session, caller, filename, reason, folder=folder)
    if volley is not None:
        _withdraw(site, session, volley, draws)
    return row


def _lock(session: Session, filename: str) -> tuple[VolleyRow | None, Sequence[JobRow]]:
    """Keep everybody else from a result's unfinished volley and its draws, before the board's turn is taken.

    A worker holds its job when it waits for the turn, and needs the volley last. Draws that came while we waited
    for the volley are locked after it: they have hardly begun, so no worker ends one of them and waits for us.
    """
    asked = select(JobRow).join(VolleyRow, col(JobRow.volley_id) == col(VolleyRow.id))
    asked = asked.where(VolleyRow.result == filename).order_by(col(JobRow.id))
    session.exec(asked.with_for_update(of=JobRow)).all()
    volley = volleys.find_unfinished(session, filename)
    if volley is None:
        return None, []
    return volley, session.exec(asked.where(JobRow.volley_id == volley.id).with_for_update(of=JobRow)).all()


def _withdraw(site: Site, session: Session, volley: VolleyRow, draws: Sequence[JobRow]) -> None:
    """End a result's verification, unless a draw has started: then it goes on, so that nobody picks among draws.

    What starting it took from the owner's budget is not given back.
    """
    if any(draw.state != State.QUEUED for draw in draws):
        return
    volley.state, volley.closed_at = volleys.WITHDRAWN, site.clock()
    session.add(volley)
    for draw in draws:
        endings.end(site, session, draw, State.CANCELLED, code="withdrawn", message=_REASON)
    verification.leave_pending(site, session, volley.result, _REASON)
