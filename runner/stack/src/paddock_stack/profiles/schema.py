"""Say what a profile is: its keys are the fields below, and `paddock-stack profiles NAME` shows all of one.

Whatever stands in a file and has no place here is refused by name, as is a value of another type.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from paddock_stack.profiles import options
from paddock_stack.refusals import Refused


class BadProfile(Refused):
    """A profile, or an override of it, says something that has no meaning."""


class Class(StrEnum):
    """What a profile does to the answers, the worst of its levers counting."""

    EXACT = "exact"
    ROUNDING = "rounding"
    MODEL_CHANGING = "model-changing"


class Attention(StrEnum):
    """Which attention kernel vLLM is made to take; `AUTO` leaves it the choice.

    The rows of `TWO_D` (vLLM's) and `FIXED_SPLIT` (ours, faster, not for every vLLM) do not depend on how many are
    decoded or verified together; those of `NATIVE` do.
    """

    TWO_D = "2d"
    FIXED_SPLIT = "fixed_split"
    NATIVE = "native"
    AUTO = "auto"


class Machine(StrEnum):
    """The machines that a profile has a variant for."""

    A10G = "a10g"
    H200 = "h200"
    CPU = "cpu"


@dataclass(frozen=True)
class Weights:
    """Where a checkpoint lies: a folder, a Hub id, or hf://buckets/…; `sha256` pins it (see `launcher/weights.py`).

    `revision` is a Hub id's commit, branch or tag; it says nothing about a folder or a bucket.
    """

    uri: str = ""
    sha256: str = ""
    revision: str = ""


@dataclass(frozen=True)
class Speculation:
    """Draft `tokens` a step with `drafter`; 0 is plain decoding.

    `accept_2d_fallback` acknowledges that more than seven leave vLLM's split attention.
    """

    drafter: Weights = field(default_factory=Weights)
    tokens: int = 0
    local_argmax: bool = False
    accept_2d_fallback: bool = False


@dataclass(frozen=True)
class Levers:
    """What the plugin does."""

    attention: Attention = Attention.AUTO
    skinny: bool = False
    persistent_norms: bool = False
    fused_argmax: bool = True


@dataclass(frozen=True)
class WarmUp:
    """How many synthetic prompts of how many tokens go before readiness, each answered by `max_tokens`."""

    prompts: int = 64
    seed: int = 0
    max_tokens: int = 16
    shortest: int = 50
    longest: int = 530


@dataclass(frozen=True)
class Profile:
    """One way to serve the model on one machine.

    `window` and `centroid_top_k` are 0 where the checkpoints' own hold. `bake` lists steps as a steps file does;
    `bake_without_skinny` follows them where our products are off. `engine` holds vLLM's own options by name.
    """

    name: str
    machine: Machine
    summary: str
    answers: Class
    warning: str = ""
    weights: Weights = field(default_factory=Weights)
    keepset: str = ""
    bake: tuple[Mapping[str, Any], ...] = ()
    bake_without_skinny: tuple[Mapping[str, Any], ...] = ()
    window: int = 0
    centroid_top_k: int = 0
    speculation: Speculation = field(default_factory=Speculation)
    levers: Levers = field(default_factory=Levers)
    engine: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    warm_up: WarmUp = field(default_factory=WarmUp)
    expected: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """Return the bake's steps, with the keep-set's file where one is pruned to it."""
        chain = self.bake if self.levers.skinny else (*self.bake, *self.bake_without_skinny)
        return tuple({**step, "keep": self.keepset} if step["step"] == "prune-head" else step for step in chain)


Part = TypeVar("Part")


class Reader:
    """Read one table of a file; `where` names it in refusals."""

    def __init__(self, where: str) -> None:
        self.where = where

    def read(self, kind: type[Part], given: object) -> Part:
        """Return the `kind` that `given` describes; raise `BadProfile` at the first thing that it doesn't know."""
        if not isinstance(given, Mapping):
            raise BadProfile(f"{self.where} must be a table, not {given!r}")
        fields = {each.name: each for each in dataclasses.fields(kind)}  # type: ignore[arg-type]
        unknown = sorted(set(given) - set(fields))
        if unknown:
            raise BadProfile(f"{self.where} has no key {unknown[0]!r}; there are {', '.join(fields)}")
        try:
            return kind(**{name: self._value(name, str(fields[name].type), value) for name, value in given.items()})
        except TypeError as fault:
            raise BadProfile(f"{self.where} lacks a key: {fault}") from fault

    def _value(self, name: str, kind: str, value: object) -> object:
        where = f"{self.where}.{name}"
        if kind in _PARTS:
            return Reader(where).read(_PARTS[kind], value)
        if kind in _ENUMS:
            return _chosen(where, _ENUMS[kind], value)
        if kind in _PLAIN:
            return _of_type(where, _PLAIN[kind], value)
        return _LARGE[kind](where, value)

    @classmethod
    def profile(cls, given: Mapping[str, Any], where: str) -> Profile:
        """Return the whole profile in `given`."""
        made = cls(where).read(Profile, given)
        counts = {"window": made.window, "centroid_top_k": made.centroid_top_k}
        for name, count in {**counts, "speculation.tokens": made.speculation.tokens}.items():
            if not (count >= 0):
                raise BadProfile(f"{where}.{name} must be 0 or more, not {count}")
        if made.warm_up.prompts < 1 or not (0 < made.warm_up.shortest <= made.warm_up.longest):
            raise BadProfile(f"{where}.warm_up needs at least one prompt, and lengths in order")
        return made


_PARTS: Mapping[str, type[Any]] = {
    "Weights": Weights,
    "Speculation": Speculation,
    "Levers": Levers,
    "WarmUp": WarmUp,
}
_ENUMS: Mapping[str, type[StrEnum]] = {"Class": Class, "Attention": Attention, "Machine": Machine}
_PLAIN: Mapping[str, type[Any]] = {"str": str, "int": int, "bool": bool}


def _of_type(where: str, kind: type[Any], value: object) -> object:
    if type(value) is not kind:
        raise BadProfile(f"{where} must be of type {kind.__name__}, not {value!r}")
    return value


def _chosen(where: str, kind: type[StrEnum], value: object) -> StrEnum:
    try:
        return kind(value)  # type: ignore[arg-type]
    except ValueError as fault:
        raise BadProfile(f"{where} must be one of {', '.join(kind)}, not {value!r}") from fault


def _sentences(where: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadProfile(f"{where} must be a list of sentences")
    return tuple(value)


def _steps(where: str, value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(one, Mapping) and "step" in one for one in value):
        raise BadProfile(f"{where} must be a list of bake steps")
    return tuple(value)


def _options(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadProfile(f"{where} must be a table")
    for name, one in value.items():
        if told := options.fault(name, one):
            raise BadProfile(f"{where}.{name} {told}")
    return value


def _variables(where: str, value: object) -> Mapping[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):
        raise BadProfile(f"{where} must give a text to each variable")
    return value


_LARGE: Mapping[str, Any] = {
    "tuple[str, ...]": _sentences,
    "tuple[Mapping[str, Any], ...]": _steps,
    "Mapping[str, Any]": _options,
    "Mapping[str, str]": _variables,
}
