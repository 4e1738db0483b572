"""A bound on what one text may cost to parse and render, by counting work rather than time.

Every rule that is tried at a line or a character and every token that is made costs one unit. When the units are
spent, or blocks lie too deep in each other, the block under way and all that follows is shown as plain text: nothing
is lost, nothing is shown by half, and one text looks the same on every machine. 200 kB of ordinary prose or tables
stay below the bound; see bench/markdown.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

UNITS = 60_000
_FOR_WHAT_IS_THERE = 10_000
"""What the words of the first blocks may cost when those behind them have used everything up."""
MAX_DEPTH = 14
"""How deep blocks may lie in each other; a list and its item count as two."""
MAX_PARAGRAPH = 65_536
"""Most characters of one paragraph, heading or cell."""
_CODE_CHARS_PER_UNIT = 64
_AMPERSANDS_PER_UNIT = 2
_UNITS_PER_CODE_BLOCK = 5
_UNITS_PER_REFERENCE = 4
"""What a line that begins with a bracket costs: it may define a link, which is slow to find out."""
_UNITS_AT = {"[": 2, "!": 3, "<": 8}
"""What is dearer than the rest: it may begin a link, a picture, an address."""
_CODE = ("fence", "code_block", "math_block")

WORK, REST = "work", "rest"
"""Keys of the parser's environment."""


class OutOfWork(Exception):
    """The text costs more than it may."""


@dataclass
class Work:
    """What is left, and where the top-level block under way began: its line, and how many tokens there were."""

    left: int = UNITS
    line: int = 0
    tokens: int = 0

    def spend(self, units: int) -> None:
        """Take units.

        Raises:
            OutOfWork: there are none left.
        """
        self.left -= units
        if self.left < 0:
            raise OutOfWork


class Metered(list[Token]):
    """A list of tokens whose growth costs."""

    def __init__(self, work: Work) -> None:
        """Begin an empty list."""
        super().__init__()
        self._work = work

    def append(self, token: Token) -> None:
        """Add a token."""
        self._work.spend(1)
        super().append(token)


def install(parser: MarkdownIt) -> None:
    """Count what `parser` does from now on; what is over the bound stands in the environment's `rest`."""
    everywhere = ["paragraph", "reference", "blockquote", "list", "table", "footnote_def"]
    parser.block.ruler.before("table", "work", _count_line, {"alt": everywhere})
    parser.inline.ruler.before("text", "work", _count_character)
    parser.core.ruler.at("block", _blocks)
    parser.core.ruler.at("inline", _inlines)


def _count_line(state: StateBlock, line: int, _end: int, silent: bool) -> bool:
    work: Work = state.env[WORK]
    start = state.bMarks[line] + state.tShift[line]
    work.spend(_UNITS_PER_REFERENCE if state.src.startswith("[", start) else 1)
    if state.level > MAX_DEPTH:
        raise OutOfWork
    if not silent and state.level == 0 and state.parentType == "root":
        work.line, work.tokens = line, len(state.tokens)
    return False


def _count_character(state: StateInline, _silent: bool) -> bool:
    state.env[WORK].spend(_UNITS_AT.get(state.src[state.pos], 1))
    return False


def _blocks(state: StateCore) -> None:
    work = state.env[WORK] = Work()
    tokens = Metered(work)
    try:
        state.md.block.parse(state.src, state.md, state.env, tokens)
    except OutOfWork:
        del tokens[work.tokens :]
        work.left = _FOR_WHAT_IS_THERE
        _leave(state, work.line)
    state.tokens = list(tokens)


def _inlines(state: StateCore) -> None:
    work: Work = state.env[WORK]
    top = 0
    for at, token in enumerate(state.tokens):
        if token.level == 0 and token.nesting >= 0:
            top = at
        try:
            _fill(state, work, token)
        except OutOfWork:
            _leave(state, _line_of(state.tokens[top:]))
            del state.tokens[top:]
            return


def _fill(state: StateCore, work: Work, token: Token) -> None:
    if token.type == "inline":
        if len(token.content) > MAX_PARAGRAPH:
            raise OutOfWork
        token.children = Metered(work)
        state.md.inline.parse(token.content, state.md, state.env, token.children)
    elif token.type in _CODE:
        length, ampersands = len(token.content), token.content.count("&")
        work.spend(_UNITS_PER_CODE_BLOCK + length // _CODE_CHARS_PER_UNIT + ampersands // _AMPERSANDS_PER_UNIT)


def _line_of(tokens: Sequence[Token]) -> int:
    return next((token.map[0] for token in tokens if token.map), 0)


def _leave(state: StateCore, line: int) -> None:
    """Leave the text from `line` on to be shown plain."""
    state.env[REST] = "\n".join(state.src.split("\n")[line:])
