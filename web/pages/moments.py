"""Times as the pages write them: relative text, the exact UTC moment in the title."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from storage.clock import to_iso_ms

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86_400


@dataclass(frozen=True)
class Moment:
    """One `<time>`: machine-readable, exact, and as people say it."""

    iso: str
    title: str
    text: str


def moment(at: datetime, *, now: datetime) -> Moment:
    """Describe `at` as seen from `now`."""
    return Moment(to_iso_ms(at), f"{at.day} {at:%b %Y, %H:%M:%S} UTC", _ago(at, now))


def _ago(at: datetime, now: datetime) -> str:
    seconds = (now - at).total_seconds()
    if seconds < _MINUTE_S:
        return "just now"
    if seconds < _HOUR_S:
        return f"{int(seconds // _MINUTE_S)} min ago"
    if seconds < _DAY_S:
        return f"{int(seconds // _HOUR_S)} h ago"
    if at.year == now.year:
        return f"{at.day} {at:%b, %H:%M}"
    return f"{at.day} {at:%b %Y}"


def span(length: timedelta | float) -> str:
    """Write a length of time; a float is in seconds."""
    seconds = length.total_seconds() if isinstance(length, timedelta) else length
    seconds = max(0.0, seconds)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), _MINUTE_S)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"
