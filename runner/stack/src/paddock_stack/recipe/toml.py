"""Write a profile's tables as TOML; the standard library only reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def written(tables: Mapping[str, Any]) -> str:
    """Return `tables` as a TOML file: plain values first, then a section a table, then lists of tables."""
    plain = {key: value for key, value in tables.items() if not isinstance(value, Mapping) and not _is_tables(value)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for key, value in tables.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{key}]", *(f"{name} = {_value(one)}" for name, one in value.items())]
        elif _is_tables(value):
            for table in value:
                lines += ["", f"[[{key}]]", *(f"{name} = {_value(one)}" for name, one in table.items())]
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{name} = {_value(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # numbers, booleans and strings are alike in both languages
