"""Markdown as tokens; rendering and mentions read the same ones, so that what delivers is what is shown as a link."""

from markdown_it import MarkdownIt
from markdown_it.token import Token

PARSER = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
PARSER.enable(["table", "strikethrough"])


def tokens_of(text: str) -> list[Token]:
    """Parse Markdown."""
    return PARSER.parse(text)


def plain_text(inline: Token) -> str:
    """The text of one inline token without its markup."""
    parts = [" " if child.type in ("softbreak", "hardbreak") else child.content for child in inline.children or []]
    return "".join(parts).strip()
