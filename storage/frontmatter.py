"""The stored form of every record: Markdown under strict, bounded YAML.

    ---
    agent: blue-heron
    refs: [20260608-153019-017_low-sun.md]
    ---

    The body, as it was written.

YAML 1.1 reads `8:26` as 506 and `0777` as 511; whoever ranks such a number ranks a typo. Here a plain
scalar is `true`, `false`, `null`, a plain decimal or text, and another notation of a number is refused.
Quoted text is always text.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite

import yaml
from yaml.resolver import Resolver

from storage.errors import InvalidFrontmatter

Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]

MAX_BYTES = 16_384
MAX_DEPTH = 5
MAX_KEYS = 64
MAX_DIGITS = 40

_FENCE = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_DECIMAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
_LEADING_ZERO = re.compile(r"[-+]?0[0-9][0-9.]*", re.ASCII)
_NUMBER_ELSEWHERE = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|0o[0-7]+", re.ASCII)
"""What a reader of YAML 1.2 takes for a number; such text is stored in quotes, so that it stays text for all."""
_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None, "": None}
_NUMBER_TAGS = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"}
_RESOLVER = Resolver()


@dataclass(frozen=True)
class Document:
    """A record: its frontmatter, keys in order, and its body."""

    frontmatter: dict[str, Value]
    body: str


def parse_bytes(data: bytes) -> Document:
    """Read a stored file; a byte order mark and CRLF are normalised away.

    Raises:
        InvalidFrontmatter: it isn't UTF-8, or as `parse` says.
    """
    try:
        return parse(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidFrontmatter(f"The file is not UTF-8 (byte {error.start}).") from error


def parse(text: str) -> Document:
    """Read frontmatter and body; text that doesn't start with `---` is all body.

    Raises:
        InvalidFrontmatter: with the reason and, where there is one, the line.
    """
    text = _normalised(text)
    opening = _FENCE.match(text)
    if opening is None:
        return Document({}, text)
    closing = _FENCE.search(text, opening.end())
    if closing is None:
        raise InvalidFrontmatter("The frontmatter that starts at the first line is never closed by a line '---'.")
    body = text[closing.end() :].removeprefix("\n")
    return Document(_read_yaml(text[opening.end() : closing.start()]), body)


def serialise(frontmatter: Mapping[str, Value], body: str) -> str:
    """Write a record so that `parse` gives the same back; key order is kept.

    Raises:
        InvalidFrontmatter: a value that `parse` would refuse.
    """
    body = body.replace("\r\n", "\n")
    if not frontmatter and not _FENCE.match(body) and not body.startswith("\ufeff"):
        return body
    head = _write_yaml(dict(frontmatter)) if frontmatter else ""
    if _read_yaml(head) != dict(frontmatter):
        raise InvalidFrontmatter("The frontmatter holds a value that can't be stored as it is.")
    return f"---\n{head}---\n\n{body}"


def _normalised(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _read_yaml(text: str) -> dict[str, Value]:
    if not (len(text.encode("utf-8", "surrogatepass")) <= MAX_BYTES):
        raise InvalidFrontmatter(f"The frontmatter is larger than {MAX_BYTES} bytes.")
    try:
        value = _Reader(yaml.parse(text, Loader=yaml.SafeLoader)).document()
    except InvalidFrontmatter:
        raise
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 2})" if error.problem_mark else ""
        raise InvalidFrontmatter(f"The frontmatter is not YAML: {error.problem}{line}.") from error
    except Exception as error:  # hostile escapes make PyYAML raise ValueError, OverflowError and others
        raise InvalidFrontmatter(f"The frontmatter is not YAML: {' '.join(str(error).split()):.200}.") from error
    return value


class _Reader:
    """Build values from YAML events, refusing what the stored form doesn't have."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._keys = 0

    def document(self) -> dict[str, Value]:
        next(self._events)  # the stream's start
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return {}
        value = self._value(next(self._events), depth=1)
        next(self._events)  # the document's end
        if not isinstance(next(self._events), yaml.StreamEndEvent):
            raise InvalidFrontmatter("The frontmatter holds more than one YAML document.")
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise InvalidFrontmatter("The frontmatter must be a mapping of keys to values.")
        return value

    def _value(self, event: yaml.Event, *, depth: int) -> Value:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused(event, "anchors and aliases are not allowed")
        if getattr(event, "tag", None):
            raise _refused(event, "tags are not allowed")
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(event)
        if not (depth <= MAX_DEPTH):
            raise _refused(event, f"it is nested deeper than {MAX_DEPTH} levels")
        return self._list(depth) if isinstance(event, yaml.SequenceStartEvent) else self._mapping(depth)

    def _list(self, depth: int) -> list[Value]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth=depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Value]:
        items: dict[str, Value] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._value(event, depth=MAX_DEPTH + 1)
            self._keys += 1
            if not isinstance(key, str) or (key == "<<" and not getattr(event, "style", None)):
                raise _refused(event, "every key must be text, and merge keys are not allowed")
            if key in items:
                raise _refused(event, f"the key {key!r:.80} stands there twice")
            if not (self._keys <= MAX_KEYS):
                raise _refused(event, f"it has more than {MAX_KEYS} keys")
            items[key] = self._value(next(self._events), depth=depth + 1)
        return items


def _scalar(event: yaml.ScalarEvent) -> Value:
    text: str = event.value
    if event.style:
        return _storable(event, text)
    if text in _WORDS:
        return _WORDS[text]
    if _DECIMAL.fullmatch(text):
        if not (sum(map(str.isdigit, text)) <= MAX_DIGITS):
            raise _refused(event, f"a number has more than {MAX_DIGITS} digits")
        return float(text) if "." in text else int(text)
    if _reads_as_number(text):
        raise _refused(event, f"{text!r:.60} is not a plain decimal; write it as one, or in quotes as text")
    return _storable(event, text)


def _storable(event: yaml.ScalarEvent, text: str) -> str:
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in text):
        raise _refused(event, "text holds a character that can't be stored")
    return text


def _reads_as_number(text: str) -> bool:
    """Tell whether some YAML reader would take this plain scalar for a number."""
    if _LEADING_ZERO.fullmatch(text):
        return True
    tag = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return tag in _NUMBER_TAGS


def _refused(event: yaml.Event, reason: str) -> InvalidFrontmatter:
    line = f" (line {event.start_mark.line + 2})" if event.start_mark else ""
    return InvalidFrontmatter(f"The frontmatter is not accepted: {reason}{line}.")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, _data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_number = _LEADING_ZERO.fullmatch(text) or _NUMBER_ELSEWHERE.fullmatch(text)
    style = '"' if _LINE_BREAK.search(text) else "'" if is_number else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _represent_float(dumper: yaml.SafeDumper, number: float) -> yaml.ScalarNode:
    if not isfinite(number):
        raise InvalidFrontmatter("The frontmatter holds a number that is not finite.")
    text = format(Decimal(repr(number)), "f")
    return dumper.represent_scalar("tag:yaml.org,2002:float", text if "." in text else f"{text}.0")


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_float)


def _write_yaml(frontmatter: dict[str, Value]) -> str:
    try:
        return yaml.dump(frontmatter, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=MAX_BYTES * 8)
    except yaml.YAMLError as error:
        raise InvalidFrontmatter(f"The frontmatter can't be stored: {error}.") from error
