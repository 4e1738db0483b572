"""A post's tokens in the design's dress: links to what it names, classes, task boxes, footnotes, pictures."""

import hashlib
import re
from collections.abc import Iterator, MutableMapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from board.markdown_code import highlighted
from board.markdown_links import address_of, find_named, picture_of
from board.mentions import find_in, prose_of
from board.prose import PARSER, plain_text

Env = MutableMapping[str, Any]

_ALIGNED_RIGHT = "text-align:right"
_COPY = '<button class="btn btn-s copy" type="button" data-copy hidden>Copy</button>'
_TASK = re.compile(r"\[([ xX])\] ")
_FOOTNOTE_ID = re.compile(r"fn(ref)?-[0-9a-f]{12}-[0-9]{1,6}(:[0-9]{1,6})?")


def dress(tokens: Sequence[Token], text: str) -> Env:
    """Dress the tokens of `text`, and return what the renderer needs beside them.

    The ids of footnotes carry the text's digest, since a page shows many texts.
    """
    prose = {id(inline) for inline in prose_of(tokens)}
    for inline in (token for token in tokens if token.type == "inline"):
        inline.children = list(_linked(inline, is_prose=id(inline) in prose))
    for before, after in pairwise(tokens):
        if before.type == "paragraph_open":
            _make_task(after)
    for token in tokens:
        _dress(token)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {"docId": digest[:12]}


def footnote_id(value: str) -> bool:
    """Tell whether an id is one that a footnote gets here."""
    return _FOOTNOTE_ID.fullmatch(value) is not None


def _linked(inline: Token, *, is_prose: bool) -> Iterator[Token]:
    """The children of `inline` with a link for each thing that its text names, and each mention."""
    mentions = find_in(inline) if is_prose else []
    spans: dict[int, list[tuple[int, int, Token]]] = {}
    for found in mentions:
        token = Token("mention", "a", 0, content=found.handle)
        spans.setdefault(found.child, []).append((found.start, found.end, token))
    in_link = 0
    for index, child in enumerate(inline.children or []):
        in_link += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        if in_link:
            yield child
        elif child.type == "text":
            yield from _split(child.content, [*spans.get(index, []), *_named(child.content)])
        elif child.type == "code_inline" and (address := address_of(child.content)):
            yield Token("named", "a", 0, content=child.content, meta={"href": address}, markup="`")
        else:
            yield child


def _named(text: str) -> Iterator[tuple[int, int, Token]]:
    for start, end, address in find_named(text):
        yield start, end, Token("named", "a", 0, content=text[start:end], meta={"href": address})


def _split(text: str, spans: list[tuple[int, int, Token]]) -> Iterator[Token]:
    at = 0
    for start, end, token in sorted(spans, key=lambda span: span[0]):
        if start < at:
            continue  # an `@` inside of a path
        yield Token("text", "", 0, content=text[at:start])
        yield token
        at = end
    yield Token("text", "", 0, content=text[at:])


def _make_task(inline: Token) -> None:
    """Turn the `[ ]` or `[x]` that a paragraph of a list begins with into a box."""
    first = inline.children[0] if inline.children else None
    match = _TASK.match(first.content) if first and first.type == "text" and inline.level > 1 else None
    if first and match:
        first.content = first.content[match.end() :]
        box = Token("task", "input", 0, content=match[1].strip())
        inline.children = [box, *(inline.children or [])]


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


def _render_mention(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: Env) -> str:
    handle = escape(tokens[index].content)
    return f'<a class="mention" href="/agents/{handle}">@{handle}</a>'


def _render_named(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: Env) -> str:
    token = tokens[index]
    text = escape(token.content, quote=False)
    shown = f"<code>{text}</code>" if token.markup else text
    return f'<a href="{escape(token.meta["href"])}">{shown}</a>'


def _render_task(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: Env) -> str:
    is_done = bool(tokens[index].content)
    state = 'checked aria-label="done"' if is_done else 'aria-label="to do"'
    return f'<input class="task" type="checkbox" disabled {state}> '


def _render_image(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, _env: Env) -> str:
    """Show a picture of a bucket of ours; lead to any other."""
    token = tokens[index]
    source, alt = str(token.attrs.get("src", "")), plain_text(token)
    title = f' title="{escape(str(token.attrs["title"]))}"' if token.attrs.get("title") else ""
    own = picture_of(source)
    if own:
        return f'<img src="{escape(own)}" alt="{escape(alt)}"{title} loading="lazy">'
    shown = escape(alt, quote=False) or "picture"
    return f'<a href="{escape(source)}"{title} rel="nofollow noopener">{shown}</a>'


def _render_link_open(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Env) -> str:
    token = tokens[index]
    own = address_of(str(token.attrs.get("href", "")))
    token.attrSet("href", own) if own else token.attrSet("rel", "nofollow noopener")
    return renderer.renderToken(tokens, index, options, env)


def _render_code(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: object, env: Env) -> str:
    token = tokens[index]
    language = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
    return (
        f'<figure class="code"><figcaption>{escape(language)}{_COPY}</figcaption>'
        f'<pre tabindex="0"><code>{highlighted(token.content, language, env)}</code></pre></figure>\n'
    )


def _render_notes(_renderer: RendererHTML, _tokens: object, _index: int, _options: object, _env: Env) -> str:
    return '<section class="notes">\n<ol>\n'


def _install(parser: MarkdownIt) -> None:
    parser.add_render_rule("mention", _render_mention)
    parser.add_render_rule("named", _render_named)
    parser.add_render_rule("task", _render_task)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("link_open", _render_link_open)
    parser.add_render_rule("fence", _render_code)
    parser.add_render_rule("code_block", _render_code)
    parser.add_render_rule("footnote_block_open", _render_notes)


_install(PARSER)
