"""Keep a manifest within what a runner takes, so that a submission that can be written can also be started.

The runner states the same bounds for itself, since neither imports the other; a test holds one against the other.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from paddock_stack.refusals import Refused

_MOST_BYTES = 65_536
_PROFILE = re.compile(r"(?=.{1,60}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9_-]{1,100}(\.[A-Za-z0-9_-]{1,100}){0,7}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_SECRET = re.compile(r".*(_TOKEN|_KEY|SECRET|PASSWORD)", re.ASCII | re.IGNORECASE)
_RUNNERS = frozenset({"MODEL_ID", "SERVED_MODEL_NAME", "HOST", "PORT", "HOME"})
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")
_LONGEST, _DEEPEST, _MOST_OVERRIDES, _LARGEST = 4096, 8, 100, 2**63


class OutOfBounds(Refused):
    """A manifest's profile or one of its overrides is none that a runner would take."""


def check_manifest(told: Mapping[str, Any]) -> None:
    """Raise `OutOfBounds` for a whole manifest that a runner refuses."""
    check(told["profile"], told.get("overrides", {}))
    for key, most in (("name", 200), ("served_model_name", 200), ("description", 2000)):
        if not told[key].isprintable() or len(told[key]) > most or not (told[key] or key == "description"):
            raise OutOfBounds(f"the manifest's {key} must be one line of at most {most} characters that print")
    if not (1024 <= told["port"] <= 65535):
        raise OutOfBounds(f"the port must lie between 1024 and 65535, not at {told['port']}")
    if len(json.dumps(told, indent=2)) > _MOST_BYTES - 200:  # what the pins add
        raise OutOfBounds(f"the manifest would have more than {_MOST_BYTES} bytes")


def check(profile: str, overrides: Mapping[str, Any]) -> None:
    """Raise `OutOfBounds`, with the key and the reason, for a profile's name or overrides that a runner refuses."""
    if not _PROFILE.fullmatch(profile):
        raise OutOfBounds(f"{profile!r:.120} is no profile's name: up to 60 letters, digits, '.', '-' and '_'")
    if len(overrides) > _MOST_OVERRIDES:
        raise OutOfBounds(f"there are more than {_MOST_OVERRIDES} overrides")
    for key, value in overrides.items():
        _check_key(key, key)
        _check_value(key, value)
    for name in _variables(overrides):
        _check_variable(name)


def _variables(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Yield the variables that `overrides` set, as `env.NAME` or in a table `env`."""
    table = overrides.get("env")
    yield from (key.removeprefix("env.") for key in overrides if key.startswith("env."))
    yield from table if isinstance(table, Mapping) else ()


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise OutOfBounds(f"{name!r:.120} is no variable's name")
    if name in _RUNNERS:
        raise OutOfBounds(f"{name} is set by the runner, so no override can")
    if _SECRET.fullmatch(name):
        raise OutOfBounds(f"{name} is named like a secret, and a manifest is public")


def _check_key(key: str, where: str) -> None:
    if not _KEY.fullmatch(key):
        raise OutOfBounds(f"the override {where!r:.120} is no key: up to eight parts of letters, digits, - and _")


def _check_value(where: str, value: object, depth: int = 0) -> None:
    if depth >= _DEEPEST and isinstance(value, Mapping | list):
        raise OutOfBounds(f"the override {where!r:.120} is nested more than {_DEEPEST} deep")
    if isinstance(value, Mapping):
        for key, held in value.items():
            _check_key(key, f"{where}.{key}")
            _check_value(f"{where}.{key}", held, depth + 1)
    elif isinstance(value, list):
        for number, held in enumerate(value):
            _check_value(f"{where}[{number}]", held, depth + 1)
    elif fault := _plain_fault(value):
        raise OutOfBounds(f"the override {where!r:.120} {fault}")


def _plain_fault(value: object) -> str | None:
    if isinstance(value, str):
        if len(value) > _LONGEST:
            return f"has more than {_LONGEST} characters"
        return "holds a character that is no text" if _NO_TEXT.search(value) else None
    if isinstance(value, int):
        return None if -_LARGEST <= value < _LARGEST else "is a number of more than 64 bits"
    if isinstance(value, float):
        return None if math.isfinite(value) else "is no finite number"
    return f"is {value!r:.60}, which JSON or a profile can't say"
