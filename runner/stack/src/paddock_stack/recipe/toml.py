"""Write a profile's tables as TOML; the standard library only reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def written(tables: Mapping[str, Any]) -> str:
    """Return `tables` as a TOML file: plain values first, then a section a table, then lists of tables."""
    plain = {key: value for key, value in tables.items() if not isinstance(value, Mapping) and not _is_tables(value)}
    lines = _lines(plain)
    for key, value in tables.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{_key(key)}]", *_lines(value)]
        elif _is_tables(value):
            for table in value:
                lines += ["", f"[[{_key(key)}]]", *_lines(table)]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_lines(value)) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    # Numbers, booleans and strings are alike in both languages, but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
