"""Budgets as the pages draw them: what it is, how much of it is gone, a bar where there is a limit."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from agents.quotas import Budget
from agents.rows import AgentRow
from runner.quotas import budgets, timed_budgets
from storage import quota_meter
from storage.local.buckets import LocalBuckets
from storage.site import Site
from web.pages import figures, moments

_LABELS = {
    "raw_posts_per_min": "Raw posts in a minute",
    "raw_posts_per_hour": "Raw posts in an hour",
    "promotions_burst": "Promotions at once",
    "promotions_per_min": "Promotions in a minute",
    "registrations_per_min": "Registrations in a minute",
    "runs_per_agent_per_day": "Runs in 24 hours",
    "runs_per_user_per_day": "Runs in 24 hours, all agents",
    "verifications_per_user_per_day": "Verifications in 24 hours",
    "bucket_bytes": "Storage, all buckets",
    "bucket_stored_bytes": "Different chunks, all buckets",
    "bucket_files": "Files, all buckets",
}
_IN_BYTES = {"bucket_bytes", "bucket_stored_bytes"}
_PUBLIC = {"raw_posts_per_hour", "promotions_per_min", "runs_per_agent_per_day"}
_NEAR = 0.9


@dataclass(frozen=True)
class Meter:
    """One budget; `percent` is None where it has no limit."""

    name: str
    label: str
    text: str
    percent: str | None
    is_near: bool
    hint: str


def meters(standing: Iterable[Budget], *, now: datetime) -> tuple[Meter, ...]:
    """Describe budgets in order."""
    return tuple(_meter(each, now) for each in standing)


def agent_meters(site: Site, session: Session, row: AgentRow, *, sees_all: bool) -> tuple[Meter, ...]:
    """Describe what an agent's page shows: all of its budgets, or what anybody may see.

    Anybody may see the budgets that are the agent's alone and what its bucket holds, if that is public. What its
    owner's other buckets hold is theirs.
    """
    now = site.clock()
    standing = (budgets if sees_all else timed_budgets)(session, site.challenge.limits, row.agent_id, now=now)
    shown = [each for each in standing if sees_all or each.kind.name in _PUBLIC]
    return (*meters(shown, now=now), *_bucket(site, session, row, sees_all=sees_all))


def _bucket(site: Site, session: Session, row: AgentRow, *, sees_all: bool) -> tuple[Meter, ...]:
    store = LocalBuckets(session, site.blobs)
    bucket = store.find(site.scratch(row.agent_id))
    if bucket is None or (bucket.private and not sees_all):
        return ()
    size, files = store.usage([bucket.name])[bucket.name]
    metered = quota_meter.metered_bucket_usage(session, store.id_of(bucket.name))
    text = f"{figures.size(size)} in {figures.counted(files, 'file')}"
    hint = f"{figures.size(metered.stored)} of different chunks." if metered else ""
    return (Meter("bucket", "Its bucket", text, None, False, hint),)


def _meter(standing: Budget, now: datetime) -> Meter:
    used, limit = _figure(standing, standing.used), standing.limit
    share = None if limit is None else min(1.0, standing.used / limit) if limit else 1.0
    return Meter(
        name=standing.kind.name,
        label=_LABELS[standing.kind.name],
        text=used if limit is None else f"{used} of {_figure(standing, limit)}",
        percent=None if share is None else f"{100 * share:.1f}",
        is_near=share is not None and share >= _NEAR,
        hint=_hint(standing, now),
    )


def _figure(standing: Budget, value: int) -> str:
    return figures.size(value) if standing.kind.name in _IN_BYTES else f"{value:,}"


def _hint(standing: Budget, now: datetime) -> str:
    said = [] if standing.limit == standing.kind.default else ["Set by an operator."]
    if standing.resets_at is not None:
        said.append(f"One comes back in {moments.span(standing.resets_at - now)}.")
    return " ".join(said)
