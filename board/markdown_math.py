r"""Formulas: `$a^2$` in a line and `$$ … $$` as a block become MathML; what can't be read as TeX stays code.

A dollar sign that has a space on its inner side or a digit behind it is money, not mathematics. A formula is at most
`MAX_TEX` characters, and a text has at most `MAX_TEX_IN_ALL`: what is beyond stays readable as code.
"""

import re
from collections.abc import MutableMapping, Sequence
from functools import lru_cache
from html import escape, unescape
from typing import Any
from xml.etree.ElementTree import tostring

from latex2mathml.converter import convert_to_element
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from board.markdown_work import WORK

MAX_TEX = 400
MAX_TEX_IN_ALL = 8_000
_MAX_BLOCK_LINES = 20
_INLINE = re.compile(rf"\$([^\s$](?:[^$\n]{{0,{MAX_TEX - 2}}}[^\s$\\])?)\$(?![0-9])")
_SPENT = "math"

_SYMBOLS = ("math", "mrow", "mi", "mo", "mn", "mtext", "mspace", "mfrac", "msqrt", "mroot", "msup", "msub", "msubsup")
_AROUND = ("munder", "mover", "munderover", "mtable", "mtr", "mtd", "mstyle", "mpadded", "mphantom", "menclose")
TAGS = frozenset({*_SYMBOLS, *_AROUND})
"""No `annotation-xml`, `mglyph`, `malignmark` or `maction`: a parser leaves MathML through them."""
ATTRIBUTES = {"math": {"display"}, "mo": {"stretchy", "form", "fence"}, "mtd": {"columnalign"}}


def install(parser: MarkdownIt) -> None:
    """Teach `parser` formulas."""
    parser.inline.ruler.before("escape", "math_inline", _inline)
    parser.block.ruler.before("fence", "math_block", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]})
    parser.inline.add_terminator_char("$")
    parser.add_render_rule("math_inline", _render_inline)
    parser.add_render_rule("math_block", _render_block)


def _inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "$" or (state.pos and state.src[state.pos - 1].isalnum()):
        return False
    match = _INLINE.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        state.push("math_inline", "math", 0).content = match[1]
    state.pos = match.end()
    return True


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    lines = [_line(state, start)]
    if not lines[0].startswith("$$") or state.sCount[start] - state.blkIndent >= 4:
        return False
    while not _is_closed(lines):
        at = start + len(lines)
        if at >= end or len(lines) > _MAX_BLOCK_LINES or not _line(state, at) or state.sCount[at] < state.blkIndent:
            return False
        lines.append(_line(state, at))
        state.env[WORK].spend(1)
    if not silent:
        token = state.push("math_block", "math", 0)
        token.content, token.map = "\n".join(lines).strip()[2:-2].strip(), [start, start + len(lines)]
        state.line = start + len(lines)
    return True


def _line(state: StateBlock, at: int) -> str:
    return state.src[state.bMarks[at] + state.tShift[at] : state.eMarks[at]].strip()


def _is_closed(lines: Sequence[str]) -> bool:
    return lines[-1].endswith("$$") and (len(lines) > 1 or len(lines[0]) > 4)


def _render_inline(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, env: MutableMapping[str, Any]
) -> str:
    return _shown(tokens[index].content, "inline", env) or f"<code>{escape(tokens[index].content, quote=False)}</code>"


def _render_block(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, env: MutableMapping[str, Any]
) -> str:
    tex = tokens[index].content
    html = _shown(tex, "block", env) or f'<pre tabindex="0"><code>{escape(tex, quote=False)}</code></pre>'
    return f'<figure class="formula">{html}</figure>\n'


def _shown(tex: str, display: str, env: MutableMapping[str, Any]) -> str:
    """Write a formula as MathML, or nothing where it is too long or no TeX."""
    env[_SPENT] = env.get(_SPENT, 0) + len(tex)
    return "" if len(tex) > MAX_TEX or env[_SPENT] > MAX_TEX_IN_ALL else _mathml(tex, display)


@lru_cache(maxsize=512)
def _mathml(tex: str, display: str) -> str:
    try:
        root = convert_to_element(tex, display=display)
    except Exception:  # noqa: BLE001  # the library raises whatever its input led it into, RecursionError included
        return ""
    for element in root.iter():
        # It writes character references as text and unescapes the whole in the end, tags that somebody wrote
        # included; here each text is unescaped alone, and `tostring` escapes it.
        element.text = unescape(element.text) if element.text else None
    return str(tostring(root, encoding="unicode"))
