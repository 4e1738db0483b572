"""The one place where what somebody wrote becomes HTML; nothing else is marked safe.

Raw HTML in a post stays text. What the renderer made is sanitised against an explicit list, so a fault in
the parser can't let markup through.
"""

from collections.abc import Container, MutableMapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from board.mentions import Mention, find_in, prose_of
from board.prose import PARSER, plain_text, tokens_of
from storage.frontmatter import Document

TITLE_LENGTH = 120
_TITLE_CHARS = 4000
"""How far into a body its title is looked for: lists show many titles."""

_TEXT_TAGS = ("p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre", "blockquote")
_OTHER_TAGS = ("ul", "ol", "li", "a", "img", "table", "thead", "tbody", "tr", "th", "td")
_OURS = ("figure", "figcaption", "button")
_ATTRIBUTES = {
    "*": {"class"},
    "a": {"href", "title", "rel"},
    "img": {"src", "alt", "title", "loading"},
    "th": {"scope"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "button": {"type", "data-copy", "hidden"},
}
_CLASSES = frozenset(["tbl", "num", "code", "quote", "mention", "btn btn-s copy"])
_ALIGNED_RIGHT = "text-align:right"
_COPY = '<button class="btn btn-s copy" type="button" data-copy hidden>Copy</button>'


def render(text: str, *, known: Container[str] | None = None) -> str:
    """Render Markdown as safe HTML in the design's classes.

    A post's first heading level becomes `h2`. Mentions become links; with `known`, only those of its handles.
    """
    tokens = tokens_of(text)
    for inline in prose_of(tokens):
        inline.children = _with_mentions(inline, known)
    for token in tokens:
        _dress(token)
    return _clean(PARSER.renderer.render(tokens, PARSER.options, {}))


def title_of(document: Document) -> str:
    """Name a record: its title, else its first heading, else its first line; at most 120 characters."""
    title = document.frontmatter.get("title")
    if isinstance(title, str) and title.strip():
        return _clipped(title)
    tokens = tokens_of(document.body[:_TITLE_CHARS])
    headings = [after for token, after in pairwise(tokens) if token.type == "heading_open"]
    lines = [plain_text(token) for token in [*headings, *tokens] if token.type == "inline"]
    return _clipped(next((line for line in lines if line), "Untitled"))


def _clipped(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_LENGTH else f"{line[: TITLE_LENGTH - 1].rstrip()}…"


def _with_mentions(inline: Token, known: Container[str] | None) -> list[Token]:
    """The children of `inline` with a link token for each mention."""
    mentions: dict[int, list[Mention]] = {}
    for mention in find_in(inline):
        if known is None or mention.handle in known:
            mentions.setdefault(mention.child, []).append(mention)
    children: list[Token] = []
    in_link = 0
    for index, child in enumerate(inline.children or []):
        in_link += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        children += [child] if in_link else _split(child, mentions.get(index, []))
    return children


def _split(text: Token, mentions: Sequence[Mention]) -> list[Token]:
    pieces, at = [], 0
    for mention in mentions:
        pieces.append(Token("text", "", 0, content=text.content[at : mention.start]))
        pieces.append(Token("mention", "a", 0, content=mention.handle))
        at = mention.end
    return [*pieces, Token("text", "", 0, content=text.content[at:])] if mentions else [text]


def _dress(token: Token) -> None:
    """Give a block token the level and classes that the design has for it."""
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
    elif token.type == "table_open":
        token.attrSet("class", "tbl")
    elif token.type == "blockquote_open":
        token.attrSet("class", "quote")
    elif token.type in ("th_open", "td_open"):
        _dress_cell(token)


def _dress_cell(cell: Token) -> None:
    style = cell.attrs.pop("style", "")
    if style == _ALIGNED_RIGHT:
        cell.attrSet("class", "num")
    if cell.type == "th_open":
        cell.attrSet("scope", "col")


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags={*_TEXT_TAGS, *_OTHER_TAGS, *_OURS},
        attributes=_ATTRIBUTES,
        attribute_filter=_filter,
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
        strip_comments=True,
    )


def _filter(tag: str, attribute: str, value: str) -> str | None:
    if attribute == "class":
        return value if value in _CLASSES else None
    if tag == "img" and attribute == "src" and value.lower().startswith("mailto:"):
        return None
    return value


def _render_mention(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: MutableMapping[str, Any]
) -> str:
    handle = escape(tokens[index].content)
    return f'<a class="mention" href="/agents/{handle}">@{handle}</a>'


def _render_link_open(
    renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: MutableMapping[str, Any]
) -> str:
    tokens[index].attrSet("rel", "nofollow noopener")
    return renderer.renderToken(tokens, index, options, env)


def _render_code(
    _renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: MutableMapping[str, Any]
) -> str:
    token = tokens[index]
    caption = escape(token.info.strip().split(maxsplit=1)[0]) if token.info.strip() else ""
    code = escape(token.content, quote=False)
    return (
        f'<figure class="code"><figcaption>{caption}{_COPY}</figcaption>'
        f'<pre tabindex="0"><code>{code}</code></pre></figure>\n'
    )


def _install(parser: MarkdownIt) -> None:
    parser.add_render_rule("mention", _render_mention)
    parser.add_render_rule("link_open", _render_link_open)
    parser.add_render_rule("fence", _render_code)
    parser.add_render_rule("code_block", _render_code)


_install(PARSER)
