"""Say what a step is, and read its options alike from a command line and from a steps file.

A step is a frozen dataclass whose fields are its options: `group_size: int = 32` is `--group-size 32` on the command
line and `{"step": "quantize", "group_size": 32}` in a file. Numbers in a row are `2,3,4` or `[2, 3, 4]`.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from paddock_stack.bake.checkpoint import Checkpoint
from paddock_stack.refusals import Refused

Numbers = tuple[int, ...]
Words = tuple[str, ...]


@dataclass(frozen=True)
class Models:
    """Hold the checkpoints that a bake turns over: the model, its drafter, or both."""

    target: Checkpoint | None = None
    drafter: Checkpoint | None = None

    def the_target(self, step: str) -> Checkpoint:
        """Return the model; raise `Refused` where the bake has none."""
        if self.target is None:
            raise Refused(f"{step} changes the model, but only a drafter was given")
        return self.target

    def the_drafter(self, step: str) -> Checkpoint:
        """Return the drafter; raise `Refused` where the bake has none."""
        if self.drafter is None:
            raise Refused(f"{step} changes the drafter, but none was given; name it with --drafter and --drafter-out")
        return self.drafter


@dataclass(frozen=True)
class Step:
    """One thing that a bake does; its fields are its options."""

    NAME: ClassVar[str]
    SUMMARY: ClassVar[str]

    @property
    def names_rows(self) -> bool:
        """Return whether this step, as the first of a chain, says whose rows a head that was cut elsewhere has."""
        return False

    def apply(self, models: Models) -> Models:
        """Return the descriptions after this step; raise `Refused` where an invariant would break."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """Return name and parameters as they stand in a provenance file."""
        return {"step": self.NAME, **dataclasses.asdict(self)}

    @classmethod
    def configure(cls, parser: argparse.ArgumentParser) -> None:
        """Add one option for each field to `parser`."""
        for field in dataclasses.fields(cls):
            needed = field.default is dataclasses.MISSING
            option = "--" + field.name.replace("_", "-")
            kind: dict[str, Any] = {"action": "store_true"} if field.type == "bool" else {"required": needed}
            parser.add_argument(option, default=argparse.SUPPRESS, help=field.metadata.get("help"), **kind)

    @classmethod
    def files(cls) -> list[str]:
        """Return the names of the options that name files."""
        return [field.name for field in dataclasses.fields(cls) if str(field.type).startswith("Path")]

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """Return the step with the options `given`; raise `Refused` for one that is missing, unknown or misshapen."""
        fields = {field.name: field for field in dataclasses.fields(cls)}
        unknown = sorted(set(given) - set(fields))
        missing = [name for name, field in fields.items() if field.default is dataclasses.MISSING and name not in given]
        if unknown or missing:
            raise Refused(f"{cls.NAME} {'does not know' if unknown else 'needs'} {', '.join(unknown or missing)}")
        return cls(**{name: _read(cls.NAME, fields[name], value) for name, value in given.items()})


def _read(step: str, field: dataclasses.Field[Any], value: Any) -> Any:
    try:
        return _READERS[str(field.type)](value)
    except (ValueError, TypeError) as fault:
        raise Refused(f"{step} can't take {value!r} for {field.name}") from fault


def _number(value: Any) -> int:
    if isinstance(value, bool | float):
        raise TypeError("no whole number")
    return int(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value


def _several(value: Any) -> list[Any]:
    parts = value.split(",") if isinstance(value, str) else list(value)
    return [part.strip() if isinstance(part, str) else part for part in parts if part != ""]


_READERS: Mapping[str, Any] = {
    "int": _number,
    "bool": _flag,
    "str": str,
    "Path": Path,
    "Path | None": Path,
    "Numbers": lambda value: tuple(_number(part) for part in _several(value)),
    "Words": lambda value: tuple(str(part) for part in _several(value)),
}
