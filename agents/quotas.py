"""What every agent and person may spend, how much of it is gone, and how operators change that.

A budget is named as in `challenge.toml`. Its subject is an agent (or a person's handle) or a person; whatever a person
has is shared by all their agents.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from sqlmodel import Session, col, select

from agents.backends import counting
from agents.limits import Window, clear, level
from storage import quota_meter
from storage.challenge import Limits
from storage.database import hold
from storage.errors import Invalid
from storage.quota_limits import agent_subject, byte_limits, default_byte_limits, limit_of, user_subject
from storage.quota_rows import QuotaChangeRow, SetLimitRow

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(hours=24)
MAX_REASON = 500


class Action(StrEnum):
    """What an operator did to a budget."""

    SET = "set"
    RESET = "reset"


class ReasonMissing(Invalid):
    """Every change of a budget says why."""

    code = "REASON_MISSING"


@dataclass(frozen=True)
class Kind:
    """A budget as the race defines it: its name, whose it is, its limit, and its span where uses leave it by time."""

    name: str
    subject: str
    default: int | None
    span: timedelta | None = None

    def window(self, session: Session) -> Window:
        """Return the window of a budget with a span, under the limit in force."""
        assert self.span is not None, f"{self.name} has no span"
        return Window(f"{self.name}:{self.subject}", self.limit(session), self.span)

    def limit(self, session: Session) -> int | None:
        """Return the limit in force: an operator's, or the race's."""
        return limit_of(session, self.subject, self.name, self.default)


@dataclass(frozen=True)
class Budget:
    """How a budget stands. `resets_at` is when the oldest use comes back; None where no use leaves by time."""

    kind: Kind
    limit: int | None
    used: int
    resets_at: datetime | None

    @property
    def remaining(self) -> int | None:
        """What is left; None where there is no limit."""
        return None if self.limit is None else max(0, self.limit - self.used)


def raw_posts(limits: Limits, handle: str) -> list[Kind]:
    """List the budgets that a raw post of a handle spends."""
    subject = agent_subject(handle)
    return [
        Kind("raw_posts_per_min", subject, limits.raw_posts_per_min, MINUTE),
        Kind("raw_posts_per_hour", subject, limits.raw_posts_per_hour, HOUR),
    ]


def promotions(limits: Limits, agent_id: str) -> list[Kind]:
    """List the budgets that a promotion from an agent's bucket spends."""
    subject, burst = agent_subject(agent_id), timedelta(seconds=limits.promotions_burst_seconds)
    return [
        Kind("promotions_burst", subject, limits.promotions_burst, burst),
        Kind("promotions_per_min", subject, limits.promotions_per_min, MINUTE),
    ]


def registrations(limits: Limits, user: str) -> Kind:
    """Name the budget that a registration by a person spends."""
    return Kind("registrations_per_min", user_subject(user), limits.registrations_per_min, MINUTE)


def bytes_of(limits: Limits, user: str) -> list[Kind]:
    """List the budgets of what a person's buckets hold."""
    default, subject = default_byte_limits(limits), user_subject(user)
    return [Kind(budget, subject, limit) for budget, limit in default.by_budget()]


@counting()
def windows(session: Session, kinds: Iterable[Kind]) -> list[Window]:
    """Return the windows of some budgets, to be taken together."""
    return [kind.window(session) for kind in kinds]


def measure(session: Session, kind: Kind, now: datetime) -> Budget:
    """Say how a budget with a span stands."""
    found = level(session, kind.window(session), now)
    return Budget(kind, found.window.limit, found.used, found.oldest_leaves_at)


def measure_bytes(session: Session, limits: Limits, user: str) -> list[Budget]:
    """Say how the budgets of a person's buckets stand."""
    usage = quota_meter.owner_usage(session, user)
    standing = byte_limits(session, limits, user).pairs(usage)
    kinds = bytes_of(limits, user)
    return [Budget(kind, limit, used, None) for kind, (_, limit, used) in zip(kinds, standing, strict=True)]


def set_limit(
    session: Session, kind: Kind, most: int | None, *, actor: str, reason: str, now: datetime
) -> QuotaChangeRow:
    """Set the limit of a budget; None lifts it.

    Raises:
        ReasonMissing: no reason came.
    """
    before = _held_limit(session, kind)
    session.merge(SetLimitRow(subject=kind.subject, budget=kind.name, most=most))
    return _note(session, kind, Action.SET, before, most, actor=actor, reason=reason, now=now)


def set_default(session: Session, kind: Kind, *, actor: str, reason: str, now: datetime) -> QuotaChangeRow:
    """Give a budget the race's own limit again.

    Raises:
        ReasonMissing: no reason came.
    """
    return _to_default(session, kind, Action.SET, actor=actor, reason=reason, now=now)


def reset(session: Session, kind: Kind, *, actor: str, reason: str, now: datetime) -> QuotaChangeRow:
    """Forget the uses of a budget with a span; give one without a span the race's own limit again.

    Raises:
        ReasonMissing: no reason came.
    """
    if kind.span is None:
        return _to_default(session, kind, Action.RESET, actor=actor, reason=reason, now=now)
    used = measure(session, kind, now).used
    clear(session, kind.window(session))
    return _note(session, kind, Action.RESET, used, 0, actor=actor, reason=reason, now=now)


def changes(session: Session, subjects: Iterable[str], *, limit: int = 50) -> list[QuotaChangeRow]:
    """List what operators changed for some subjects, newest first."""
    query = select(QuotaChangeRow).where(col(QuotaChangeRow.subject).in_(list(subjects)))
    return list(session.exec(query.order_by(col(QuotaChangeRow.id).desc()).limit(limit)))


def _to_default(
    session: Session, kind: Kind, action: Action, *, actor: str, reason: str, now: datetime
) -> QuotaChangeRow:
    before, row = _held_limit(session, kind), session.get(SetLimitRow, (kind.subject, kind.name))
    if row is not None:
        session.delete(row)
    return _note(session, kind, action, before, kind.default, actor=actor, reason=reason, now=now)


def _held_limit(session: Session, kind: Kind) -> int | None:
    """Read the limit in force when nobody else can set it any more: the trail names what was there before."""
    hold(session, [f"limit:{kind.name}:{kind.subject}"])
    return kind.limit(session)


def _note(
    session: Session,
    kind: Kind,
    action: Action,
    before: int | None,
    after: int | None,
    *,
    actor: str,
    reason: str,
    now: datetime,
) -> QuotaChangeRow:
    said = " ".join(reason.split())
    if not (0 < len(said) <= MAX_REASON):
        raise ReasonMissing(f"Say why, in at most {MAX_REASON} characters.")
    row = QuotaChangeRow(
        at=now,
        subject=kind.subject,
        budget=kind.name,
        action=action,
        actor=actor,
        reason=said,
        before=before,
        after=after,
    )
    session.add(row)
    session.flush()
    return row
