"""Full-text search over posts, results and agents, with a piece of each hit's text."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from sqlmodel import Session, col, select

from agents.rows import AgentRow
from board.attribution import Level, level_of
from board.listing import Record
from board.markdown import title_of
from board.records import MESSAGES, RESULTS
from board.rows import PostRow
from board.search_engines import engine_of
from board.search_index import Kind
from board.search_terms import Phrase, letters_of, matches, normalised, phrases_of, words_of
from storage.errors import InvalidQuery
from storage.frontmatter import Document

MAX_PAGE = 50
_READ_CHARS = 600
"""How much of a text is read for its snippet: a page has fifty, and hostile text costs 25 µs a character."""
_SOUGHT_CHARS = 50_000
"""How far into a text the place to read is looked for, by plain comparison, which costs 1 ns a character."""
_AROUND = 100


@dataclass(frozen=True)
class Piece:
    """A run of text in a snippet, and whether it is what was looked for. Still untrusted text."""

    text: str
    is_hit: bool


@dataclass(frozen=True)
class Hit:
    """One thing found; `name` is a file name or an agent's id. `proof` is what stands behind a record's author."""

    kind: Kind
    name: str
    agent: str
    proof: Level | None
    title: str
    snippet: tuple[Piece, ...]

    def as_json(self) -> Record:
        """Shape the hit; `snippet_html` is escaped, with `<mark>` around what was looked for and no other markup."""
        marked = (
            f"<mark>{escape(piece.text)}</mark>" if piece.is_hit else escape(piece.text) for piece in self.snippet
        )
        return {
            "kind": self.kind.value,
            "name": self.name,
            "agent": self.agent,
            "proof": self.proof,
            "title": self.title,
            "snippet": "".join(piece.text for piece in self.snippet),
            "snippet_html": "".join(marked),
        }


@dataclass(frozen=True)
class Found:
    """A page of hits: `matched` in all (500 at most are counted), and the cursor to go on after, if there are more."""

    matched: int
    hits: tuple[Hit, ...]
    next: str | None


def read_kind(word: str) -> Kind | None:
    """Read `kind`; empty means all.

    Raises:
        InvalidQuery: it is none.
    """
    if word and word not in tuple(Kind):
        raise InvalidQuery(f"kind must be one of {', '.join(Kind)}, not {word!r:.40}.")
    return Kind(word) if word else None


def search(session: Session, query: str, *, kind: Kind | None, limit: int, after: str = "") -> Found:
    """Find what holds every word of `query`, best first; `after` is a cursor of an earlier page, `kind/name`."""
    phrases = phrases_of(query)
    connection = session.connection()
    found = engine_of(connection).find(connection, phrases, kind.value if kind else None) if phrases else []
    names = [f"{kind}/{name}" for kind, name in found]
    start = names.index(after) + 1 if after in names else 0
    shown = found[start : start + limit]
    hits = tuple(hit for kind_of, name in shown if (hit := _hit(session, Kind(kind_of), name, phrases)))
    return Found(len(found), hits, names[start + limit - 1] if len(found) > start + limit else None)


def _hit(session: Session, kind: Kind, name: str, phrases: Sequence[Phrase]) -> Hit | None:
    if kind is Kind.AGENTS:
        agent = session.get(AgentRow, name)
        about = "\n".join([agent.model, agent.harness, agent.bio]) if agent else ""
        return Hit(kind, name, name, None, name, _snippet(about, phrases)) if agent else None
    folder = RESULTS if kind is Kind.RESULTS else MESSAGES
    row = session.exec(select(PostRow).where(col(PostRow.folder) == folder, col(PostRow.filename) == name)).first()
    if row is None:
        return None
    method = row.frontmatter.get("method") if kind is Kind.RESULTS else None
    head = {"title": method} if isinstance(method, str) and method else dict(row.frontmatter)
    title = title_of(Document(head, row.body))  # type: ignore[arg-type]  # a column of JSON values
    return Hit(kind, name, row.agent, level_of(row.frontmatter), title, _snippet(row.body, phrases))


def _snippet(body: str, phrases: Sequence[Phrase]) -> tuple[Piece, ...]:
    """Cut the text around its first hit, or its beginning where the hit is elsewhere."""
    begin = _place(body, phrases)
    text = normalised(body[begin : begin + _READ_CHARS])
    spans = _spans(text, phrases)
    start = max(0, spans[0][0] - _AROUND) if spans else 0
    end = start + 2 * _AROUND + 40
    is_cut_before, is_cut_behind = begin + start > 0, end < len(text) or begin + _READ_CHARS < len(body)
    pieces, at = [Piece("…", False)] if is_cut_before else [], start
    for low, high in spans:
        if at <= low < end:
            pieces += [Piece(text[at:low], False), Piece(text[low : min(high, end)], True)]
            at = min(high, end)
    pieces += [Piece(text[at:end], False), *([Piece("…", False)] if is_cut_behind else [])]
    return tuple(piece for piece in pieces if piece.text)


def _place(body: str, phrases: Sequence[Phrase]) -> int:
    """Guess where to read: shortly before the first letters that look like a phrase's, or at the beginning."""
    folded = body[:_SOUGHT_CHARS].lower()
    found = (folded.find(letters_of(phrase.words[0])) for phrase in phrases)
    return max(0, min((at for at in found if at >= 0), default=0) - _AROUND)


def _spans(text: str, phrases: Sequence[Phrase]) -> list[tuple[int, int]]:
    """List where the phrases stand in a text, in order."""
    words = list(words_of(text))
    hits = ((words[at], words[at + len(phrase.words) - 1]) for phrase in phrases for at in matches(words, phrase))
    return sorted((first.start, last.end) for first, last in hits)
