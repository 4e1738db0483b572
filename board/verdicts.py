"""What verification found, as the file `verdicts/{result}/verdict.json` keeps it for good.

    {"state": "valid", "reason": "", "measured": 507.1, "interval_low": 505.2, …,
     "gates": [{"name": "guard", "passed": true, "measured": 2.39, "limit": 2.42, "detail": ""}],
     "draws": [{"index": 1, "state": "completed", "code": "", "score": 507.0, …}]}

Scores are in the race's unit, the guard as it is measured. The file is public: numbers, names and sentences
of our own; no prompt, token id or log may ever be put into `reason`, `detail` or `code`.
"""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from storage.errors import Invalid

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


class BadVerdict(Invalid):
    """A stored verdict can't be read."""

    code = "BAD_VERDICT"


class State(StrEnum):
    """Where a result's verification stands."""

    VALID = "valid"
    INVALID = "invalid"
    INCONCLUSIVE = "inconclusive"
    PENDING = "pending"
    IMPORTED = "imported"
    """Another board judged it, or nobody did; no verdict of ours says this."""

    @property
    def shown(self) -> "State":
        """The state in the words of old clients: `inconclusive` has more draws coming, `imported` none of ours yet."""
        return State.PENDING if self in (State.INCONCLUSIVE, State.IMPORTED) else self


@dataclass(frozen=True)
class Gate:
    """One hard check: what was measured, against which limit."""

    name: str
    passed: bool
    measured: Finite | None = None
    limit: Finite | None = None
    detail: str = ""


@dataclass(frozen=True)
class Draw:
    """One started draw; `score` and `guard` are there when it was measured, `code` says why when it wasn't."""

    index: int
    state: str
    code: str = ""
    score: Positive | None = None
    guard: Positive | None = None
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The conclusion of a volley with its evidence in numbers; `n` counts the draws that `measured` averages."""

    state: State
    reason: str = ""
    measured: Positive | None = None
    interval_low: Positive | None = None
    interval_high: Positive | None = None
    measured_guard: Positive | None = None
    n: Annotated[int, Field(ge=0)] = 0
    hardware: str = ""
    claim_state: Literal["held", "overclaimed", ""] = ""
    rule_version: int = 1
    opened_at: AwareDatetime | None = None
    closed_at: AwareDatetime | None = None
    gates: tuple[Gate, ...] = ()
    draws: tuple[Draw, ...] = ()

    @property
    def scores(self) -> tuple[float, ...]:
        """Scores of the measured draws, in their order."""
        return tuple(draw.score for draw in self.draws if draw.score is not None)


_SHAPE = TypeAdapter(Verdict)


def path_of(filename: str) -> str:
    """Name the central bucket's file that holds the verdict on result `filename`."""
    return f"verdicts/{filename.removesuffix('.md')}/verdict.json"


def to_bytes(verdict: Verdict) -> bytes:
    """Write a verdict as JSON with a line end.

    Raises:
        BadVerdict: a field is out of its bounds, or a valid verdict has no measurement.
    """
    text = json.dumps(asdict(_checked(asdict(verdict))), indent=1, ensure_ascii=False, default=_plain)
    return f"{text}\n".encode()


def parse(data: bytes) -> Verdict:
    """Read a stored verdict.

    Raises:
        BadVerdict: it isn't JSON of that shape, or holds a number that isn't finite.
    """
    try:
        return _checked(json.loads(data))
    except (ValueError, RecursionError) as error:
        raise BadVerdict(f"The verdict is not JSON: {' '.join(str(error).split()):.120}.") from error


def _checked(fields: object) -> Verdict:
    try:
        verdict = _SHAPE.validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadVerdict(f"The verdict is wrong at {'.'.join(map(str, first['loc']))}: {first['msg']}.") from error
    if verdict.state is State.VALID and verdict.measured is None:
        raise BadVerdict("A valid verdict needs a measurement.")
    return verdict


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no place in a verdict")
