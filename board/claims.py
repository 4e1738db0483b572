"""What a result's frontmatter claims, read strictly against the race's fields."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from storage.challenge import Challenge
from storage.errors import InvalidFrontmatter

_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,20})?", re.ASCII)


class Status(StrEnum):
    """What kind of outcome a result reports; a negative one is listed and never ranks."""

    AGENT_RUN = "agent-run"
    NEGATIVE = "negative"


@dataclass(frozen=True)
class Claim:
    """A result's own word: `score` in the race's unit, `guard` if the race or the post has one."""

    score: float
    guard: float | None
    method: str
    status: Status
    description: str
    hardware: str


def read(frontmatter: Mapping[str, object], challenge: Challenge, *, is_history: bool = False) -> Claim:
    """Read a result's claim; one from another board need have nothing but its score.

    Raises:
        InvalidFrontmatter: names the first field that is missing or wrong, and why.
    """
    required = (challenge.score.field,) if is_history else challenge.required_fields
    missing = [name for name in required if frontmatter.get(name) in (None, "", [], {})]
    if missing:
        needed = ", ".join(required)
        raise InvalidFrontmatter(f"The result lacks the field '{missing[0]}'.", hint=f"A result has {needed}.")
    guard = challenge.guard.field
    return Claim(
        score=_positive(challenge.score.field, frontmatter.get(challenge.score.field)),
        guard=None if frontmatter.get(guard) is None else _positive(guard, frontmatter[guard]),
        method=_text("method", frontmatter.get("method", "")),
        status=_status(frontmatter.get("status", Status.AGENT_RUN)),
        description=_text("description", frontmatter.get("description", "")),
        hardware=_text("hardware", frontmatter.get("hardware") or ""),
    )


def _positive(name: str, value: object) -> float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, value, "is not a plain decimal number, such as 507.3, without a unit")
    if not 0 < value <= 10**40 or not math.isfinite(value):
        raise _wrong(name, value, "is not a finite number over 0")
    return float(value)


def _status(value: object) -> Status:
    if value not in tuple(Status):
        raise _wrong("status", value, f"is not one of {', '.join(Status)}")
    return Status(str(value))


def _text(name: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _wrong(name, value, "is not text")
    return str(value)


def _wrong(name: str, value: object, reason: str) -> InvalidFrontmatter:
    return InvalidFrontmatter(f"The result's field '{name}' {reason}; it says {value!r:.60}.")
