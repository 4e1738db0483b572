"""Who stands where: entries in, order out.

Entries are ranked by score; ties go to the earlier post, then to the agent's id. Beside its rank an entry
has a range of ranks it can't be told apart from: 1 + how many are significantly better, to N − how many are
significantly worse, N being all entries on the board. An entry with fewer than two draws has no range, and
is neither better nor worse than anyone. Each pair is judged alone, at one-sided p < 0.01.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from board.statistics import Sample, estimate
from board.student import t_quantile

_ALPHA = 0.01


@dataclass(frozen=True)
class Entry:
    """What ranking looks at; `draws` are scores of single draws, in the unit of `score`."""

    filename: str
    agent: str
    score: float
    posted_at: datetime
    draws: tuple[float, ...] = ()


@dataclass(frozen=True)
class Range:
    """The best and the worst rank that an entry may deserve, both inclusive."""

    best: int
    worst: int


@dataclass(frozen=True)
class Placed:
    """An entry with its rank (from 1) and its range, if it has one."""

    entry: Entry
    rank: int
    range: Range | None


def rank(entries: Iterable[Entry], *, higher_is_better: bool, best_per_agent: bool) -> list[Placed]:
    """Put `entries` in order, keeping each agent's best alone if `best_per_agent`."""
    sign = -1.0 if higher_is_better else 1.0
    ordered = sorted(entries, key=lambda e: (sign * e.score, e.posted_at, e.agent, e.filename))
    kept = _first_per_agent(ordered) if best_per_agent else ordered
    ranges = _ranges(kept, sign)
    return [Placed(entry, place, ranges[place - 1]) for place, entry in enumerate(kept, 1)]


def _first_per_agent(ordered: Sequence[Entry]) -> list[Entry]:
    first: dict[str, Entry] = {}
    for entry in ordered:
        first.setdefault(entry.agent, entry)
    return list(first.values())


def _ranges(ordered: Sequence[Entry], sign: float) -> list[Range | None]:
    logs = [(place, estimate(entry.draws).logs) for place, entry in enumerate(ordered) if len(entry.draws) > 1]
    better, worse = Counter[int](), Counter[int]()
    for (upper, a), (lower, b) in combinations(logs, 2):
        if _is_above(a, b, sign):
            worse[upper] += 1
            better[lower] += 1
    ranges: list[Range | None] = [None] * len(ordered)
    for place, _ in logs:
        ranges[place] = Range(1 + better[place], len(ordered) - worse[place])
    return ranges


def _is_above(a: Sample, b: Sample, sign: float) -> bool:
    """Judge as `statistics.welch` does, with the df rounded down so that few critical values serve all pairs."""
    var_a, var_b = a.sd**2 / a.n, b.sd**2 / b.n
    lead = sign * (b.mean - a.mean)
    df = (var_a + var_b) ** 2 / (var_a**2 / a.df + var_b**2 / b.df)
    return lead > t_quantile(1.0 - _ALPHA, float(math.floor(df))) * math.sqrt(var_a + var_b)
