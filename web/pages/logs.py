"""Text as numbered lines that can be linked to: the end of a run's log, the beginning of a file."""

from dataclasses import dataclass

_SHOWN = 200
_LINE_CHARS = 2000


@dataclass(frozen=True)
class LogLine:
    """One line with its number from 1; `look` is `err`, `warn` or empty, as the line's own words say."""

    number: int
    text: str
    look: str


@dataclass(frozen=True)
class Log:
    """The last lines of a log; `left_out` counts the lines before them."""

    lines: tuple[LogLine, ...]
    left_out: int


def tail(content: bytes, *, shown: int = _SHOWN) -> Log:
    """Number a log's lines and keep the last of them; control characters are dropped."""
    texts = content.decode("utf-8", "replace").splitlines()
    first = max(0, len(texts) - shown)
    kept = (LogLine(i, clean, _look(clean)) for i, clean in enumerate(map(_clean, texts[first:]), first + 1))
    return Log(tuple(kept), first)


def head(text: str, *, shown: int) -> tuple[tuple[LogLine, ...], bool]:
    """Number a text's first lines; the second value tells whether anything of it is left out."""
    texts = text.splitlines()
    kept = tuple(LogLine(number, _clean(line), "") for number, line in enumerate(texts[:shown], 1))
    return kept, len(texts) > shown or any(len(line) > _LINE_CHARS for line in texts)


def _clean(text: str) -> str:
    return "".join(char for char in text[:_LINE_CHARS] if char.isprintable() or char == "\t")


def _look(text: str) -> str:
    words = text[:200].lower()
    if "error" in words or "traceback" in words or "exception" in words:
        return "err"
    return "warn" if "warning" in words or words.startswith("warn") else ""
