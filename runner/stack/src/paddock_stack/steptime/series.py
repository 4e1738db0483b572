"""Keep the durations of one kind of call and tell their statistics."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

WINDOW = 4096  # durations kept for percentiles; counts and sums are over all
PERCENTILES = (50, 90, 99)


@dataclass
class Series:
    """Durations in milliseconds, in the order in which they ended."""

    count: int = 0
    total_ms: float = 0.0
    max_ms: float = 0.0
    recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def add(self, duration_ms: float) -> None:
        """Take in one duration."""
        self.count += 1
        self.total_ms += duration_ms
        self.max_ms = max(self.max_ms, duration_ms)
        self.recent_ms.append(duration_ms)

    def told(self) -> dict[str, float | int | None]:
        """Return count, mean and maximum over all, and percentiles over the last `WINDOW`; None where there is none."""
        ordered = sorted(self.recent_ms)
        figures: dict[str, float | int | None] = {
            "count": self.count,
            "mean_ms": self.total_ms / self.count if self.count else None,
            "max_ms": self.max_ms if self.count else None,
        }
        return figures | {f"p{each}_ms": percentile(ordered, each) for each in PERCENTILES}


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """Return the nearest-rank percentile of ascending values: the least one that `percent` % do not exceed."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
