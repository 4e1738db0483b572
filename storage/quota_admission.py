"""Let a batch's files in as long as their owner's limits hold, judged by what the whole batch leaves behind.

Only growth is refused: a file may replace another of its size at 99 % of a limit, and what a batch deletes makes room
for what it adds, whatever the order of its lines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from storage import quota_meter as meter
from storage.quota_limits import UNITS, ByteLimits
from storage.quota_shapes import Shapes
from storage.quota_tally import Tally, Usage

FileRows = Sequence[dict[str, Any]]
Held = Mapping[str, tuple[str, int]]
"""Digest and size of the files at some paths."""


@dataclass(frozen=True)
class Admitted:
    """Rows that may be written, and for the path of each other one the reason."""

    rows: list[dict[str, Any]]
    refused: list[tuple[str, str]]


@dataclass(frozen=True)
class Excess:
    """A limit, and a growth that breaks it."""

    unit: str
    limit: int
    was: int
    used: int


class Admission:
    """Judges additions to one bucket within one transaction; holds its owner's meter until that ends."""

    def __init__(
        self,
        session: Session,
        bucket_id: int,
        limits_of: Callable[[str], ByteLimits],
        *,
        held: Callable[[Sequence[str]], Held],
        leaving: Sequence[str],
    ) -> None:
        """Bind to a bucket, of which `held` looks files up; `leaving` are the paths that the batch ends up deleting."""
        self._session = session
        self._owner = meter.lock(session, bucket_id)
        self._limits = limits_of(self._owner) if self._owner is not None else ByteLimits()
        self._held, self._leaving = held, frozenset(leaving)

    def admit(self, rows: FileRows) -> Admitted:
        """Split rows (`path, digest, size`) into those that may be written, in order, and the rest."""
        if self._owner is None or not rows or self._is_roomy(self._owner, rows):
            return Admitted(list(rows), [])
        return self._one_by_one(self._owner, rows)

    def _is_roomy(self, owner: str, rows: FileRows) -> bool:
        """Tell whether all of it fits even if nothing is replaced and no chunk known: most batches, at no cost."""
        now, more = meter.owner_usage(self._session, owner), sum(row["size"] for row in rows)
        most = Usage(now.size + more, now.stored + more, now.files + len(rows))
        return all(limit is None or used <= limit for _, limit, used in self._limits.pairs(most))

    def _one_by_one(self, owner: str, rows: FileRows) -> Admitted:
        paths = sorted({row["path"] for row in rows} | self._leaving)
        held = dict(self._held(paths))
        tally = self._tally(owner, rows, held)
        admitted = Admitted([], [])
        for row in rows:
            reason = None if row["path"] in self._leaving else self._judge(owner, tally, row, held)
            if reason is None:
                admitted.rows.append(row)
            else:
                admitted.refused.append((row["path"], reason))
        return admitted

    def _tally(self, owner: str, rows: FileRows, held: Held) -> Tally:
        """Load the owner's meter as it will be when the batch's deletions are done."""
        digests = {row["digest"] for row in rows} | {digest for digest, _ in held.values()}
        tally = meter.tally(self._session, meter.owner_scope(owner), digests, Shapes(self._session))
        for path in self._leaving & held.keys():
            digest, size = held[path]
            tally.change(digest, size=size, by=-1)
        return tally

    def _judge(self, owner: str, tally: Tally, row: dict[str, Any], held: dict[str, tuple[str, int]]) -> str | None:
        before, replaced, fresh = tally.usage, held.get(row["path"]), (row["digest"], row["size"])
        _swap(tally, replaced, fresh)
        broken = excess(self._limits, before, tally.usage)
        if broken is None:
            held[row["path"]] = fresh
            return None
        _swap(tally, fresh, replaced)
        return (
            f"over quota: {owner}'s buckets hold {broken.was:,} {broken.unit}, "
            f"this would make it {broken.used:,}, and {broken.limit:,} are allowed"
        )


def excess(limits: ByteLimits, before: Usage, after: Usage) -> Excess | None:
    """Find the first limit that a growth from `before` to `after` breaks."""
    grown = zip(limits.pairs(after), limits.pairs(before), strict=True)
    for (budget, limit, used), (_, _, was) in grown:
        if limit is not None and not (used <= limit) and not (used <= was):
            return Excess(UNITS[budget], limit, was, used)
    return None


def _swap(tally: Tally, gone: tuple[str, int] | None, come: tuple[str, int] | None) -> None:
    if gone is not None:
        tally.change(gone[0], size=gone[1], by=-1)
    if come is not None:
        tally.change(come[0], size=come[1], by=1)
