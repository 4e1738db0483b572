"""Strips of draws on one shared axis, as positions in per cent for server-made SVG.

Draws, their interval and the agent's claim stand on one scale, so that overlap is seen before it is read.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from web.pages import figures

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS = 6
_MARGIN = 0.06
_REACH = 0.15


@dataclass(frozen=True)
class Tick:
    """One labelled line of the axis; `x` in per cent."""

    x: str
    text: str


@dataclass(frozen=True)
class Axis:
    """A scale from `low` to `high`, in the score's unit."""

    low: float
    high: float
    ticks: tuple[Tick, ...]

    def at(self, value: float) -> str:
        """Place a value, in per cent of the width."""
        return _percent((value - self.low) / (self.high - self.low))

    def holds(self, value: float) -> bool:
        """Tell whether a value lies on the scale."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Measured:
    """What a strip shows: the draws (score unit), their mean and interval, and the agent's claim."""

    draws: tuple[float, ...]
    mean: float | None
    low: float | None
    high: float | None
    claim: float | None = None


@dataclass(frozen=True)
class Strip:
    """Positions in per cent; `off` says at which side it lies when the scale doesn't reach it."""

    draws: tuple[str, ...]
    mean: str | None
    ci_x: str | None
    ci_width: str | None
    claim: str | None
    off: str
    spoken: str


def axis_for(rows: Sequence[Measured]) -> Axis | None:
    """Choose the scale that holds the leading row and every row within 15 % of it; None without numbers."""
    known = [row for row in rows if _values(row)]
    if not known:
        return None
    lead = _values(known[0])
    near = [value for row in known for value in _values(row) if abs(value - lead[0]) <= _REACH * abs(lead[0])]
    return _axis(min(near), max(near))


def _axis(low: float, high: float) -> Axis:
    width = (high - low) or abs(high) * 0.02 or 1.0
    low, high = low - _MARGIN * width, high + _MARGIN * width
    step = _step((high - low) / _TICKS)
    digits = max(0, -math.floor(math.log10(step))) if step < 1 else 0
    first = math.ceil(low / step)
    values = [step * i for i in range(first, math.floor(high / step) + 1)]
    span = high - low
    ticks = tuple(Tick(_percent((value - low) / span), f"{value:,.{digits}f}") for value in values)
    return Axis(low, high, ticks)


def _step(rough: float) -> float:
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * step for step in _STEPS if size * step >= rough * 0.999)


def strip(row: Measured, axis: Axis) -> Strip:
    """Place one row on the axis."""
    off = _off(row, axis)
    inside = row.low is not None and row.high is not None and not off
    low = max(row.low, axis.low) if inside and row.low is not None else None
    high = min(row.high, axis.high) if inside and row.high is not None else None
    return Strip(
        draws=tuple(axis.at(value) for value in row.draws if axis.holds(value)),
        mean=axis.at(row.mean) if row.mean is not None and axis.holds(row.mean) else None,
        ci_x=axis.at(low) if low is not None else None,
        ci_width=_percent((high - low) / (axis.high - axis.low)) if low is not None and high is not None else None,
        claim=axis.at(row.claim) if row.claim is not None and axis.holds(row.claim) else None,
        off=off,
        spoken=_spoken(row),
    )


def _off(row: Measured, axis: Axis) -> str:
    values = _values(row)
    if not values or axis.holds(values[0]):
        return ""
    return "below" if values[0] < axis.low else "above"


def _values(row: Measured) -> list[float]:
    """List what is placed, what ranks first."""
    measured = [value for value in (row.mean, *row.draws, row.low, row.high) if value is not None]
    return [value for value in (*measured, row.claim) if value is not None and math.isfinite(value)]


def _spoken(row: Measured) -> str:
    parts = []
    if row.draws:
        span = f"{figures.speed(min(row.draws))} to {figures.speed(max(row.draws))}"
        parts.append(f"{figures.counted(len(row.draws), 'draw')} from {span}")
    if row.mean is not None:
        parts.append(f"mean {figures.speed(row.mean)}")
    if row.low is not None and row.high is not None:
        parts.append(f"95 % interval {figures.speed(row.low)} to {figures.speed(row.high)}")
    if row.claim is not None:
        parts.append(f"claimed {figures.speed(row.claim)}")
    return ", ".join(parts) or "nothing measured yet"


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"
