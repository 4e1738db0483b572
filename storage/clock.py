"""Time, passed in by whoever starts things, so that tests can hold it still."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]

_STAMP = "%Y%m%d-%H%M%S"


def utc_now() -> datetime:
    """Tell the time now, aware, in UTC."""
    return datetime.now(UTC)


def to_stamp(at: datetime) -> str:
    """Write `at` as `YYYYMMDD-HHmmss-mmm`, UTC."""
    at = at.astimezone(UTC)
    return f"{at.strftime(_STAMP)}-{at.microsecond // 1000:03d}"


def from_stamp(stamp: str) -> datetime:
    """Read `YYYYMMDD-HHmmss[-mmm]`, UTC.

    Raises:
        ValueError: the text has another form or names no moment.
    """
    seconds, millis = stamp[:15], stamp[15:]
    at = datetime.strptime(seconds, _STAMP).replace(tzinfo=UTC)
    if not millis:
        return at
    if not (len(millis) == 4 and millis[0] == "-" and millis[1:].isascii() and millis[1:].isdigit()):
        raise ValueError(f"{stamp!r} is not a stamp")
    return at + timedelta(milliseconds=int(millis[1:]))


def to_iso_ms(at: datetime) -> str:
    """Write `at` as ISO 8601 in UTC with milliseconds and `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
