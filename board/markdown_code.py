"""Code with its words in colour: a few roles as classes, never a style, and only within bounds.

Only the languages below are read, and of a text at most `MAX_CHARS_IN_ALL` characters: the lexers are regular
expressions that others wrote.
"""

from collections.abc import MutableMapping
from functools import cache
from html import escape
from itertools import groupby
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Literal,
    Name,
    Number,
    String,
    _TokenType,
)

MAX_CHARS = 12_000
MAX_CHARS_IN_ALL = 24_000
MAX_LINE = 500
_SPENT = "highlighted"

LANGUAGES = {
    **dict.fromkeys(("python", "py", "python3"), "python"),
    **dict.fromkeys(("sh", "bash", "shell", "zsh"), "bash"),
    **dict.fromkeys(("json", "jsonl"), "json"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cpp", "c++", "cxx"), "cpp"),
    **dict.fromkeys(("cuda", "cu"), "cuda"),
    **dict.fromkeys(("js", "javascript"), "javascript"),
    **dict.fromkeys(("ts", "typescript"), "typescript"),
    **dict.fromkeys(("rust", "rs"), "rust"),
    **dict.fromkeys(("diff", "patch"), "diff"),
    **{name: name for name in ("toml", "ini", "sql", "go", "html", "xml", "css", "make", "docker")},
}
_ROLES: tuple[tuple[_TokenType, str], ...] = (
    (Comment, "hl-c"),
    (Keyword, "hl-k"),
    (String, "hl-s"),
    (Number, "hl-m"),
    (Literal, "hl-m"),
    (Name.Function, "hl-f"),
    (Name.Class, "hl-f"),
    (Name.Tag, "hl-f"),
    (Name.Builtin, "hl-b"),
    (Name.Decorator, "hl-b"),
    (Name.Attribute, "hl-b"),
    (Generic.Inserted, "hl-in"),
    (Generic.Deleted, "hl-out"),
    (Generic.Heading, "hl-c"),
    (Generic.Subheading, "hl-c"),
)
CLASSES = frozenset(role for _, role in _ROLES)


def highlighted(code: str, language: str, env: MutableMapping[str, Any]) -> str:
    """Write code as HTML, its words in colour where the language is known and the text's bounds allow it."""
    name = LANGUAGES.get(language.lower())
    if name is None or not _is_within(code, env):
        return escape(code, quote=False)
    found = _lexer(name).get_tokens_unprocessed(code)
    pieces = ((_role(kind), value) for _, kind, value in found)
    runs = ((role, "".join(value for _, value in run)) for role, run in groupby(pieces, key=lambda piece: piece[0]))
    return "".join(_piece(role, text) for role, text in runs)


def _is_within(code: str, env: MutableMapping[str, Any]) -> bool:
    if len(code) > MAX_CHARS or max(map(len, code.split("\n"))) > MAX_LINE:
        return False
    env[_SPENT] = env.get(_SPENT, 0) + len(code)
    return bool(env[_SPENT] <= MAX_CHARS_IN_ALL)


def _piece(role: str, text: str) -> str:
    shown = escape(text, quote=False)
    return f'<span class="{role}">{shown}</span>' if role else shown


@cache
def _role(kind: _TokenType) -> str:
    return next((role for of, role in _ROLES if kind[: len(of)] == of), "")


@cache
def _lexer(name: str) -> Lexer:
    return get_lexer_by_name(name)
