"""Numbers as the pages write them: one decimal for speeds, three for perplexity, a real minus, en dashes."""

import math

MISSING = "–"
_UNITS = ("B", "kB", "MB", "GB", "TB")


def speed(value: float | None) -> str:
    """Write a score with one decimal and thousands separators."""
    return _fixed(value, 1)


def perplexity(value: float | None) -> str:
    """Write a perplexity with three decimals."""
    return _fixed(value, 3)


def plain(value: object) -> str:
    """Write a number of unknown meaning with as many digits as it needs, anything else as its text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return _fixed(value, 0)
    if isinstance(value, float):
        return _fixed(value, 3) if abs(value) < 100 else _fixed(value, 1)
    return MISSING if value is None else str(value)


def _fixed(value: float | None, decimals: int) -> str:
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{value:,.{decimals}f}".replace("-", "−")


def half_width(low: float | None, high: float | None) -> str:
    """Write half an interval as `±1.2`; empty where there is no interval."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"±{_fixed((high - low) / 2, 1)}"


def change(now: float | None, before: float | None) -> str:
    """Write how far `now` lies from `before`, in per cent with its sign."""
    if now is None or before is None or not (math.isfinite(now) and math.isfinite(before)) or before == 0:
        return MISSING
    percent = round(100 * (now - before) / before, 1)
    sign = "+" if percent > 0 else ""
    return f"{sign}{_fixed(percent + 0.0, 1)} %"


def places(first: int, last: int) -> str:
    """Write a range of places, `1–3`, or one place."""
    return str(first) if first == last else f"{first}–{last}"


def size(size_bytes: int) -> str:
    """Write a size in decimal units, as disks and the `hf` command count them."""
    amount, unit = float(size_bytes), 0
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{amount:.0f} {_UNITS[unit]}" if unit == 0 or amount >= 9.95 else f"{amount:.1f} {_UNITS[unit]}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: `1 post`, `2 posts`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
