"""What a trace's `manifest.md` says: which session, with what, and how many tokens it took.

    ---
    schema_version: 1
    harness: claude-code
    session_id: 0b7c9a52-6f3e-4a21
    model: a-model
    started_at: 2026-11-29T12:00:00Z
    native_log_file: session.jsonl
    total_tokens: 182340
    input_tokens: 150200
    output_tokens: 32140
    tool_calls: 57
    ---

    What the session was about.

A count may also stand in a mapping, `tokens: {total: 182340, input: 150200}`. One that is absent or null is
unknown, which is not 0.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from board.listing import read_moment
from storage.errors import InvalidFrontmatter, InvalidPath
from storage.frontmatter import Value
from storage.paths import check_path

FILE = "manifest.md"
REQUIRED = ("schema_version", "harness", "session_id")
COUNTS = ("total", "input", "output", "cache_read", "cache_creation", "reasoning")
MOST_TOKENS = 10**15
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read; `tokens` has every name of `COUNTS`, with None for what is unknown."""

    harness: str
    session_id: str
    model: str
    native_log_file: str
    result_ref: str
    started_at: datetime | None
    tokens: dict[str, int | None]
    tool_calls: int | None
    cost_usd: float | None

    @property
    def is_complete(self) -> bool:
        """Whether the session's tokens are fully reported: in all, in and out."""
        return None not in (self.tokens["total"], self.tokens["input"], self.tokens["output"])


def check_session_id(text: str) -> str:
    """Return `text` if it can name a session.

    Raises:
        InvalidPath: it can't.
    """
    if not _SESSION.fullmatch(text):
        raise InvalidPath(f"{text!r:.80} is no session id: 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-'.")
    return text


def read(head: Mapping[str, Value]) -> Manifest:
    """Read a manifest's frontmatter.

    Raises:
        InvalidFrontmatter: names the first field that is missing or wrong, and why.
    """
    missing = [name for name in REQUIRED if head.get(name) in (None, "", [], {})]
    if missing:
        raise InvalidFrontmatter(f"The manifest lacks {missing[0]!r}.", hint=f"It has {', '.join(REQUIRED)}.")
    _word(head, "schema_version")
    return Manifest(
        harness=_word(head, "harness"),
        session_id=_word(head, "session_id"),
        model=_word(head, "model"),
        native_log_file=_log_file(_word(head, "native_log_file")),
        result_ref=_word(head, "result_ref"),
        started_at=_moment(head.get("started_at")),
        tokens=_tokens(head),
        tool_calls=_count("tool_calls", head.get("tool_calls")),
        cost_usd=_cost(head.get("cost_usd")),
    )


def _tokens(head: Mapping[str, Value]) -> dict[str, int | None]:
    nested = head.get("tokens")
    if nested is not None and not isinstance(nested, dict):
        raise InvalidFrontmatter("The manifest's 'tokens' is no mapping.", hint=f"Its keys: {', '.join(COUNTS)}.")
    inner = {name: _count(f"tokens.{name}", (nested or {}).get(name)) for name in COUNTS}
    outer = {name: _count(f"{name}_tokens", head.get(f"{name}_tokens")) for name in COUNTS}
    return {name: inner[name] if outer[name] is None else outer[name] for name in COUNTS}


def _count(name: str, value: Value) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not (0 <= value <= MOST_TOKENS):
        raise _wrong(name, value, f"is not a whole number from 0 to {MOST_TOKENS}")
    return value


def _cost(value: Value) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value <= 10**9):
        raise _wrong("cost_usd", value, "is not a number of dollars from 0 to 1000000000")
    return float(value)


def _moment(value: Value) -> datetime | None:
    if value in (None, ""):
        return None
    try:
        return read_moment(str(value))
    except (ValueError, OverflowError) as error:
        raise _wrong("started_at", value, "is neither ISO 8601 nor a stamp") from error


def _log_file(path: str) -> str:
    try:
        return check_path(path) if path else ""
    except InvalidPath as error:
        raise _wrong("native_log_file", path, "is no clean path inside the session's folder") from error


def _word(head: Mapping[str, Value], name: str) -> str:
    value = head.get(name)
    if isinstance(value, bool | list | dict):
        raise _wrong(name, value, "is not text")
    return "" if value is None else str(value)


def _wrong(name: str, value: Value, reason: str) -> InvalidFrontmatter:
    return InvalidFrontmatter(f"The manifest's field {name!r} {reason}; it says {value!r:.60}.")
