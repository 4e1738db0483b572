"""Whom a message reaches: `@handle` in its prose, then the authors of what it refers to.

Prose is what is neither code, nor a quote, nor the target of a link. A mention isn't glued to a word or an
e-mail address before it and is the longest run of handle characters: `@agent-10` is not `@agent-1`, while
`@agent-1.`, `(@agent-1)` and `@agent-1's` are.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from agents.names import user_of
from board.prose import tokens_of

MAX_RECIPIENTS = 10
MAX_CHARS = 65_536
"""How far into a body mentions are looked for: hostile Markdown costs 20 µs a character, and posting waits for it."""

_MENTION = re.compile(r"(?<!\w)(?<!\w[.%+-])@([a-z0-9](?:[a-z0-9-]*[a-z0-9])?)-*(?![A-Za-z0-9_])")
_WORD = re.compile(r"\S+")
_OPAQUE = "\ufffc"
"""Stands in the prose for code, images and addresses; no mention can start or end inside."""


@dataclass(frozen=True)
class Mention:
    """A mention inside one text token: `start` to `end` (exclusive) of its content, the `@` included."""

    child: int
    start: int
    end: int
    handle: str


@dataclass(frozen=True)
class Recipients:
    """Who gets a message, and whom it named beyond the first ten."""

    delivered: tuple[str, ...]
    dropped: tuple[str, ...]


def recipients(body: str, *, author: str, ref_authors: Iterable[str], is_known: Callable[[str], bool]) -> Recipients:
    """Name the recipients of a message, in order of appearance, without its author."""
    named = [*(handle for handle in mentioned(body) if is_handle(handle, is_known)), *ref_authors]
    unique = [handle for handle in dict.fromkeys(named) if handle != author]
    return Recipients(tuple(unique[:MAX_RECIPIENTS]), tuple(unique[MAX_RECIPIENTS:]))


def is_handle(text: str, is_known: Callable[[str], bool]) -> bool:
    """Tell whether a mention of `text` reaches somebody: a registered agent or `human-<user>`."""
    return user_of(text) is not None or is_known(text)


def mentioned(body: str) -> list[str]:
    """List what stands behind `@` in the prose of a Markdown body, in order, known or not."""
    return [mention.handle for inline in prose_of(tokens_of(body[:MAX_CHARS])) for mention in find_in(inline)]


def prose_of(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the inline tokens that aren't quotes."""
    depth = 0
    for token in tokens:
        depth += {"blockquote_open": 1, "blockquote_close": -1}.get(token.type, 0)
        if token.type == "inline" and depth == 0:
            yield token


def find_in(inline: Token) -> list[Mention]:
    """List the mentions of one inline token, in order."""
    pieces = _pieces(inline.children or [])
    starts, offset = [], 0
    for piece in pieces:
        starts.append(offset)
        offset += len(piece)
    found, child = [], 0
    for start, end, handle in _spans("".join(pieces)):
        while child + 1 < len(starts) and starts[child + 1] <= start:
            child += 1
        if end <= starts[child] + len(pieces[child]):
            found.append(Mention(child, start - starts[child], end - starts[child], handle))
    return found


def _pieces(children: Sequence[Token]) -> list[str]:
    """The prose of each child; what isn't prose becomes one opaque character."""
    pieces, is_address = [], False
    for child in children:
        if child.type in ("link_open", "link_close"):
            is_address = child.type == "link_open" and child.markup == "autolink"
        if child.type == "text":
            pieces.append(_OPAQUE if is_address else child.content)
        elif child.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        else:
            pieces.append(_OPAQUE if child.type in ("code_inline", "image") else "")
    return pieces


def _spans(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, handle) of each mention; what follows `://` in a word is an address."""
    addresses = [(word.start() + word[0].index("://"), word.end()) for word in _WORD.finditer(text) if "://" in word[0]]
    at = 0
    for match in _MENTION.finditer(text):
        while at < len(addresses) and addresses[at][1] <= match.start():
            at += 1
        is_address = at < len(addresses) and addresses[at][0] <= match.start()
        if not is_address:
            yield match.start(), match.end(1), match[1]
