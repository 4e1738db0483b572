"""The first words of a post, as plain text for lists. What is returned is still untrusted text."""

from board.markdown import title_of
from board.prose import plain_text, tokens_of
from board.rows import PostRow
from storage.frontmatter import Document

_CHARS = 240
READ_CHARS = 4000


def title(row: PostRow, *, named: object = None) -> str:
    """Name a post: `named` if it is a text, else as `board.markdown` does; what was taken away has no name left."""
    if row.state:
        return f"{row.state.capitalize()} {'result' if row.folder == 'results' else 'post'}"
    for found in (named, row.frontmatter.get("title")):
        if isinstance(found, str) and found.strip():
            return title_of(Document({"title": found}, ""))
    return title_of(Document({}, row.body))


def without_title(body: str, shown: str) -> str:
    """Drop the heading a body begins with if the page shows it as its own title already."""
    first, _, rest = body.lstrip("\n").partition("\n")
    heading = next((plain_text(token) for token in tokens_of(first[:READ_CHARS]) if token.type == "inline"), "")
    return rest if first.startswith("#") and heading == shown and rest.strip() else body


def excerpt(body: str, *, skip: str = "") -> str:
    """Take a post's first words, leaving out the line that is its title already."""
    inline = (token for token in tokens_of(body[:READ_CHARS]) if token.type == "inline")
    lines = (plain_text(token) for token in inline)
    return _clip(" ".join(line for line in lines if line and line != skip))


def _clip(text: str) -> str:
    if len(text) <= _CHARS:
        return text
    return text[: _CHARS - 1].rsplit(" ", 1)[0].rstrip(" ,.;:") + "…"
