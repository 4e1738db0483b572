"""Markdown as tokens; rendering and mentions read the same ones, so that what delivers is what is shown as a link."""

import re
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.footnote.index import footnote_def, footnote_ref

from board import markdown_math, markdown_work

_FOOTNOTE = re.compile(r"\[\^[^\s\]]{1,64}\]")
_DEEPEST_INLINE = 30


@dataclass(frozen=True)
class Parsed:
    """A text's tokens, and the end of it that is beyond the bounds of `board.markdown_work`, as it was written."""

    tokens: list[Token]
    rest: str


def parse(text: str) -> Parsed:
    """Parse Markdown."""
    env: dict[str, object] = {}
    tokens = PARSER.parse(text, env)
    return Parsed(tokens, str(env.get(markdown_work.REST, "")))


def tokens_of(text: str) -> list[Token]:
    """Parse Markdown, within bounds."""
    return parse(text).tokens


def plain_text(inline: Token) -> str:
    """The text of one inline token without its markup."""
    parts = [" " if child.type in ("softbreak", "hardbreak") else child.content for child in inline.children or []]
    return "".join(parts).strip()


def _footnote_def(state: StateBlock, line: int, end: int, silent: bool) -> bool:
    """Read a footnote's definition; a label has 64 characters at most, so that none is looked for over and over."""
    start = state.bMarks[line] + state.tShift[line]
    return bool(_FOOTNOTE.match(state.src, start)) and footnote_def(state, line, end, silent)


def _footnote_ref(state: StateInline, silent: bool) -> bool:
    return bool(_FOOTNOTE.match(state.src, state.pos)) and footnote_ref(state, silent)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    parser.options["maxNesting"] = _DEEPEST_INLINE
    parser.enable(["table", "strikethrough"])
    parser.use(footnote_plugin, inline=False)
    parser.block.ruler.at("footnote_def", _footnote_def, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.at("footnote_ref", _footnote_ref)
    markdown_math.install(parser)
    markdown_work.install(parser)
    return parser


PARSER = _parser()
