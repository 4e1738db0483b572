"""JSON from a server nobody trusts: finite numbers, short integers, bounded depth, or nothing."""

from __future__ import annotations

import json
import math
from typing import Any

_LONGEST_INTEGER = 19  # digits of 2**63


class NotStrict(ValueError):
    """Say why the text is not JSON that we accept."""


def parse(body: bytes) -> Any:
    """Return what `body` holds, or raise `NotStrict`."""
    try:
        return json.loads(body, parse_constant=_refuse, parse_int=_integer, parse_float=_decimal)
    except NotStrict:
        raise
    except RecursionError:
        raise NotStrict("it is nested too deeply") from None
    except ValueError:
        raise NotStrict("it is not JSON") from None


def _refuse(name: str) -> None:
    raise NotStrict(f"it holds {name}, which JSON does not have")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _LONGEST_INTEGER:
        raise NotStrict("it holds an integer that is too long")
    return int(digits)


def _decimal(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise NotStrict("it holds a number that is not finite")
    return value
