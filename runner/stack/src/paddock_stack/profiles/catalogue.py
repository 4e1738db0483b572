"""Find profiles by name and put their layers together: common ones, the profile's, the machine's, overrides.

A file may name another in `extends`, a path starting at its own folder; tables are merged key by key, anything else is
replaced. Under `[machine.NAME]` stands what that machine changes, with `differs` in words; it is laid over everything
inherited.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from paddock_stack.profiles.schema import BadProfile, Machine, Profile, Reader

DEFAULT = "int4-fast"
NAMES = ("exact-bf16", "int4-ar", "exact-mtp", "int4-mtp-2d", "int4-fast", "int4-headprune", "pruned-osoi5-repro")
_COMMON = "common"
_OWN = ("name", "machine", "extends")
_MERGED = ("differs",)  # lists that grow along `extends` instead of being replaced


def load(name: str, machine: Machine, overrides: Mapping[str, Any] | None = None) -> Profile:
    """Return the profile `name` for `machine`, with `overrides` by dotted key (`speculation.tokens`).

    `name` may also be the path of a file that ends in .toml. Raises `BadProfile` for what is unknown.
    """
    layers = list(reversed(_chain(name).values()))
    machines = [layer.pop("machine", {}) for layer in layers]
    _check_machines(name, machines)
    merged: dict[str, Any] = {}
    for layer in (*layers, *(each.get(machine, {}) for each in machines)):
        merged = laid_over(merged, layer)
    for key, value in (overrides or {}).items():
        if key.partition(".")[0] in _OWN:
            raise BadProfile(f"{key} can't be overridden: it says which profile this is")
        merged = laid_over(merged, _nested(key, value))
    return Reader.profile({**merged, "name": Path(name).stem, "machine": machine.value}, Path(name).stem)


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return `below` with the keys of `above` laid over it, table by table."""
    made = dict(below)
    for key, value in above.items():
        if isinstance(value, Mapping) and isinstance(made.get(key), Mapping):
            made[key] = laid_over(made[key], value)
        elif key in _MERGED and isinstance(made.get(key), list) and isinstance(value, list):
            made[key] = [*made[key], *value]
        else:
            made[key] = value
    return made


def files_of(name: str) -> list[Path]:
    """Return the files that the profile `name` is made of beside bundled ones: its own and those that it extends."""
    return [Path(each) for each in _chain(name) if each.endswith(".toml")]


def _chain(name: str) -> dict[str, dict[str, Any]]:
    """Return the profile's tables by its name and those of what it extends, the furthest last."""
    layers: dict[str, dict[str, Any]] = {}
    while name:
        if name in layers:
            raise BadProfile(f"the profile {name} extends itself")
        layers[name] = _read(name)
        name = _extended(name, layers[name].pop("extends", ""))
    return layers


def _extended(name: str, told: object) -> str:
    if not isinstance(told, str):
        raise BadProfile(f"the profile {name} extends {told!r}, which is no name")
    return os.path.normpath(Path(name).parent / told) if told.endswith(".toml") else told


def _read(name: str) -> dict[str, Any]:
    if name.endswith(".toml"):
        return _parsed(Path(name), Path(name).name)
    if name not in (*NAMES, _COMMON):
        raise BadProfile(f"there is no profile {name!r}; there are {', '.join(NAMES)}")
    return _parsed(files("paddock_stack.profiles").joinpath("bundled", f"{name}.toml"), name)


def _parsed(file: Any, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise BadProfile(f"the profile {name} can't be read: {fault}") from fault


def _check_machines(name: str, machines: list[dict[str, Any]]) -> None:
    known = tuple(Machine)
    for each in machines:
        unknown = sorted(set(each) - set(known))
        if unknown:
            raise BadProfile(f"{name} has a variant for {unknown[0]!r}; machines are {', '.join(known)}")


def _nested(key: str, value: Any) -> dict[str, Any]:
    made: Any = value
    for part in reversed(key.split(".")):
        made = {part: made}
    return dict(made)


def read_setting(text: str) -> tuple[str, Any]:
    """Return key and value of `key=value`; the value is read as TOML, and as plain text where it is none."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise BadProfile(f"--set takes key=value, not {text!r}")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value
