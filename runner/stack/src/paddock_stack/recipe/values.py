"""Read the values of a recipe's variables, which are all text, each as what it must be."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from paddock_stack.refusals import Refused


class BadRecipe(Refused):
    """The manifest can't be read, or a variable of it holds what it can't."""


def number(name: str, env: Mapping[str, str]) -> int:
    """Return the whole number that the variable `name` holds."""
    try:
        return int(env[name])
    except ValueError as fault:
        raise BadRecipe(f"{name} must be a whole number, not {env[name]!r:.100}") from fault


def share(name: str, env: Mapping[str, str]) -> float:
    """Return the share, above 0 and at most 1, that the variable `name` holds."""
    try:
        told = float(env[name])
    except ValueError:
        told = math.nan
    if not (0 < told <= 1):
        raise BadRecipe(f"{name} must be a number above 0 and at most 1, not {env[name]!r:.100}")
    return told


def table(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON object that the variable `name` holds, an empty one where there is none."""
    try:
        told = json.loads(env.get(name) or "{}", parse_constant=_refuse)
    except (ValueError, RecursionError) as fault:
        raise BadRecipe(f"{name} is no JSON: {fault}") from fault
    return inner(name, told)


def inner(name: str, told: object) -> dict[str, Any]:
    """Return `told` where it is an object."""
    if not isinstance(told, dict):
        raise BadRecipe(f"{name} must be an object, not {told!r:.100}")
    return told


def whole(name: str, told: object) -> int:
    """Return `told`, a value within a variable's JSON, where it is a whole number."""
    if type(told) is not int:
        raise BadRecipe(f"{name} must be a whole number, not {told!r:.100}")
    return told


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
