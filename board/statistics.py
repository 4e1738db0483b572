"""A number is a distribution: draws in, estimates and comparisons out.

Rates are compared on logarithms, so that a score is the geometric mean of its draws and an interval is a
percentage. Source of the formulas: the volley protocol of the design's integrity notes, 2.3.4 and 2.3.7.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from board.student import t_quantile, t_upper_tail

FLOOR_SD = 0.004
"""Run-to-run sd of one submission on a log scale (0.4 %), before the board knows its own."""
FLOOR_DF = 10.0
"""Draws' worth of trust in `FLOOR_SD`."""
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Sample:
    """What a test needs of a group of numbers: `n` of them, their mean, and their sd on `df` degrees of freedom."""

    n: int
    mean: float
    sd: float
    df: float

    def __post_init__(self) -> None:
        if not (self.n >= 1 and math.isfinite(self.mean) and 0.0 <= self.sd < math.inf and self.df > 0.0):
            raise ValueError(f"{self} is not a sample")


@dataclass(frozen=True)
class Estimate:
    """A score: the geometric mean of `n` draws, in their unit, with its two-sided 95 % interval.

    One draw has no interval. `logs` is the same on a log scale, for comparisons.
    """

    score: float
    low: float | None
    high: float | None
    n: int
    logs: Sample


@dataclass(frozen=True)
class Comparison:
    """Welch's t test of two means: `p` is one-sided, of the first being above the second."""

    t: float
    df: float
    p: float


def sample(values: Sequence[float]) -> Sample:
    """Summarise at least two finite numbers.

    Raises:
        ValueError: fewer, or one that isn't finite.
    """
    if len(values) < 2:
        raise ValueError("a sample has at least two numbers")
    mean = statistics.fmean(values)
    return Sample(len(values), mean, statistics.stdev(values, mean), len(values) - 1.0)


def estimate(draws: Sequence[float], *, floor_sd: float = FLOOR_SD, floor_df: float = FLOOR_DF) -> Estimate:
    """Estimate a score from the draws of one volley, or of several that are pooled.

    Few draws understate their spread, so the variance never falls under its average with `floor_sd`²,
    weighted by degrees of freedom; the interval has n − 1 + `floor_df` of them.

    Raises:
        ValueError: no draws, or one that isn't finite and over 0.
    """
    if not draws or not all(0.0 < draw < math.inf for draw in draws):
        raise ValueError("a score needs draws that are finite and over 0")
    values = [math.log(draw) for draw in draws]
    n, mean = len(values), statistics.fmean(values)
    raw = statistics.variance(values, mean) if n > 1 else 0.0
    df = n - 1 + floor_df
    floored = ((n - 1) * raw + floor_df * floor_sd**2) / df
    logs = Sample(n, mean, math.sqrt(max(raw, floored)), df)
    if n == 1:
        return Estimate(draws[0], None, None, 1, logs)
    half = t_quantile((1.0 + _CONFIDENCE) / 2.0, df) * logs.sd / math.sqrt(n)
    return Estimate(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n, logs)


def welch(a: Sample, b: Sample) -> Comparison:
    """Test whether `a` lies above `b` without assuming equal variances (Welch 1947, Satterthwaite's df).

    Raises:
        ValueError: both samples have no spread at all, so that nothing can be said.
    """
    var_a, var_b = a.sd**2 / a.n, b.sd**2 / b.n
    if not var_a + var_b > 0.0:
        raise ValueError("two samples without spread can't be compared")
    t = (a.mean - b.mean) / math.sqrt(var_a + var_b)
    df = (var_a + var_b) ** 2 / (var_a**2 / a.df + var_b**2 / b.df)
    return Comparison(t, df, t_upper_tail(t, df))


def expected_best(n: int) -> float:
    """Give the expected largest of `n` draws from a normal distribution, in sds above its mean.

    Integrates x · n φ(x) Φ(x)^(n−1) by the trapezoidal rule over ±9 sd, exact to 9 digits there. Tests check published
    figures with it.
    """
    if n < 1:
        raise ValueError("there is no best of nothing")
    steps, width, normal = 3600, 0.005, statistics.NormalDist()
    points = (step * width - 9.0 for step in range(steps + 1))
    return math.fsum(x * n * normal.pdf(x) * normal.cdf(x) ** (n - 1) for x in points) * width
