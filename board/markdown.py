"""The one place where what somebody wrote becomes HTML; nothing else is marked safe.

Raw HTML in a post stays text. What the renderer made is sanitised against an explicit list, so a fault in
the parser can't let markup through.
"""

import re
from collections.abc import Container
from html import escape
from itertools import pairwise

import nh3

from board import markdown_math
from board.markdown_cache import Renderings
from board.markdown_code import CLASSES as CODE_CLASSES
from board.markdown_tokens import dress, footnote_id
from board.prose import PARSER, parse, plain_text, tokens_of
from storage.frontmatter import Document

TITLE_LENGTH = 120
MAX_CHARS = 200_000
"""How much of one text is rendered; what is over it is not shown at all."""
_TITLE_CHARS = 1_000
"""How far into a body its title is looked for: lists show many titles."""

_TEXT_TAGS = ("p", "br", "hr", "h2", "h3", "h4", "h5", "h6", "strong", "em", "s", "code", "pre", "blockquote", "span")
_OTHER_TAGS = ("ul", "ol", "li", "a", "img", "table", "thead", "tbody", "tr", "th", "td", "sup", "section", "input")
_OURS = ("figure", "figcaption", "button")
_ATTRIBUTES = {
    "*": {"class"},
    "a": {"href", "title", "rel", "id"},
    "img": {"src", "alt", "title", "loading"},
    "input": {"type", "checked", "disabled", "aria-label"},
    "th": {"scope"},
    "li": {"id"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "button": {"type", "data-copy", "hidden"},
    **markdown_math.ATTRIBUTES,
}
_MENTION = re.compile(r'<a class="mention" href="/agents/([a-z0-9-]+)">@\1</a>')
_CLASSES = CODE_CLASSES | {
    "tbl", "num", "code", "quote", "mention", "btn btn-s copy", "task", "notes", "formula", "picture",
}  # fmt: skip


def render(text: str, *, known: Container[str] | None = None) -> str:
    """Render Markdown as safe HTML in the design's classes.

    A post's first heading level becomes `h2`. Mentions become links; with `known`, only those of its handles.
    A text is rendered once: the next time its HTML is taken from memory.
    """
    html = _RENDERINGS.get(text[:MAX_CHARS])
    return html if known is None else _MENTION.sub(lambda link: link[0] if link[1] in known else f"@{link[1]}", html)


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


def _made(text: str) -> str:
    """Render without looking at anything but the text."""
    parsed = parse(text)
    env = dress(parsed.tokens, text)
    html = _clean(PARSER.renderer.render(parsed.tokens, PARSER.options, env))
    # What is beyond the bounds stays as it was written, one escape away from HTML: the sanitiser takes 2 µs for an
    # ampersand.
    rest = f'<figure class="code"><pre tabindex="0"><code>{escape(parsed.rest)}</code></pre></figure>\n'
    return html + rest if parsed.rest.strip() else html


def _clean(html: str) -> str:
    return nh3.clean(
        html,
        tags={*_TEXT_TAGS, *_OTHER_TAGS, *_OURS, *markdown_math.TAGS},
        attributes=_ATTRIBUTES,
        attribute_filter=_filter,
        url_schemes={"http", "https", "mailto"},
        link_rel=None,
        strip_comments=True,
    )


def _filter(tag: str, attribute: str, value: str) -> str | None:
    if attribute == "class":
        return value if value in _CLASSES else None
    if attribute == "id":
        return value if footnote_id(value) else None
    if tag == "img" and attribute == "src":
        return value if value.startswith(("/buckets/", "/artifacts/")) else None
    if tag == "input" and attribute == "type":
        return value if value == "checkbox" else "hidden"
    return value


_RENDERINGS = Renderings(_made)
