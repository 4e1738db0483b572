"""Read the environment variables that turn levers on and off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddock_stack.refusals import Refused

FUSED_ARGMAX = "PADDOCK_FUSED_ARGMAX"  # 1 where unset: the drafter's fused sparse argmax, on a GPU
SKINNY = "PADDOCK_SKINNY"  # 0 where unset: our products in front of Marlin and cuBLAS for up to eight tokens, on a GPU
PERSISTENT_NORMS = "PADDOCK_PERSISTENT_NORMS"  # 0 where unset: norms keep a whole row in registers, on a GPU
ATTENTION = "PADDOCK_ATTENTION"  # 2d where unset: which of our backends the name CUSTOM means, or fixed_split
STEPTIME = "PADDOCK_STEPTIME"  # unset: no probe; otherwise the JSON file that it writes


class NotASwitch(Refused):
    """An environment variable that turns a lever on or off says something else."""


def is_on(environ: Mapping[str, str], name: str, *, default: bool) -> bool:
    """Return whether the switch `name` is on; raise `NotASwitch` for anything but 0, 1 or nothing."""
    told = environ.get(name, "")
    if told not in ("", "0", "1"):
        raise NotASwitch(f"{name} must be 0 or 1, not {told!r}")
    return default if told == "" else told == "1"


def one_of(environ: Mapping[str, str], name: str, choices: Sequence[str]) -> str:
    """Return which of `choices` the switch `name` says, the first for nothing; raise `NotASwitch` for another."""
    told = environ.get(name, "") or choices[0]
    if told not in choices:
        raise NotASwitch(f"{name} must be {' or '.join(choices)}, not {told!r}")
    return told
