"""The seam between search and the database: one small contract, one implementation a database.

Words come in as `board.search_terms` spells them, a-z, 0-9 and `_` alone, so no text of anybody's is ever part of
an engine's query language.
"""

from collections.abc import Sequence
from typing import Protocol

from sqlalchemy import Connection, text

from board.search_terms import Phrase

MAX_FOUND = 500


class SearchEngine(Protocol):
    """What every engine does alike; one suite of tests runs against all of them."""

    def put(self, connection: Connection, number: int, title: Sequence[str], body: Sequence[str]) -> None:
        """Store the words of document `number`, which has none yet."""

    def drop(self, connection: Connection, number: int) -> None:
        """Forget the words of document `number`."""

    def clear(self, connection: Connection) -> None:
        """Forget everything."""

    def find(self, connection: Connection, phrases: Sequence[Phrase], kind: str | None) -> list[tuple[str, str]]:
        """List (kind, name) of documents that hold every phrase, best first and then newest, at most 500."""


def engine_of(connection: Connection) -> SearchEngine:
    """Return the engine that this database has."""
    return _Lexemes() if connection.dialect.name == "postgresql" else _Fts5()


class _Fts5:
    """SQLite's FTS5; a hit in the title weighs four times one in the body."""

    def put(self, connection: Connection, number: int, title: Sequence[str], body: Sequence[str]) -> None:
        insert = text("INSERT INTO search_words (rowid, title, body) VALUES (:number, :title, :body)")
        connection.execute(insert, {"number": number, "title": " ".join(title), "body": " ".join(body)})

    def drop(self, connection: Connection, number: int) -> None:
        connection.execute(text("DELETE FROM search_words WHERE rowid = :number"), {"number": number})

    def clear(self, connection: Connection) -> None:
        connection.execute(text("DELETE FROM search_words"))

    def find(self, connection: Connection, phrases: Sequence[Phrase], kind: str | None) -> list[tuple[str, str]]:
        query = text(
            "SELECT search.kind, search.name FROM search_words JOIN search ON search.id = search_words.rowid "
            "WHERE search_words MATCH :asked AND (:kind = '' OR search.kind = :kind) "
            "ORDER BY bm25(search_words, 4.0, 1.0), search.name DESC LIMIT :most"
        )
        asked = " AND ".join(f'"{" ".join(phrase.words)}"{" *" if phrase.is_prefix else ""}' for phrase in phrases)
        rows = connection.execute(query, {"asked": asked, "kind": kind or "", "most": MAX_FOUND})
        return [(row[0], row[1]) for row in rows]


class _Lexemes:
    """PostgreSQL's `tsvector`, filled with our words: its own parser never sees a text.

    A position is at most 16,383 there, so what stands later in a long body can't be found.
    """

    _MOST = 16_000
    _MOST_OF_ONE = 250

    def put(self, connection: Connection, number: int, title: Sequence[str], body: Sequence[str]) -> None:
        places: dict[str, list[str]] = {}
        for at, word in enumerate([*title, "", *body][: self._MOST], 1):
            if word:
                places.setdefault(word, []).append(f"{at}A" if at <= len(title) else str(at))
        words = " ".join(f"'{word}':{','.join(found[: self._MOST_OF_ONE])}" for word, found in places.items())
        insert = text("INSERT INTO search_words (id, words) VALUES (:number, CAST(:words AS tsvector))")
        connection.execute(insert, {"number": number, "words": words})

    def drop(self, connection: Connection, number: int) -> None:
        connection.execute(text("DELETE FROM search_words WHERE id = :number"), {"number": number})

    def clear(self, connection: Connection) -> None:
        connection.execute(text("DELETE FROM search_words"))

    def find(self, connection: Connection, phrases: Sequence[Phrase], kind: str | None) -> list[tuple[str, str]]:
        query = text(
            "SELECT search.kind, search.name FROM search_words JOIN search ON search.id = search_words.id, "
            "CAST(:asked AS tsquery) AS asked WHERE search_words.words @@ asked "
            "AND (CAST(:kind AS text) = '' OR search.kind = :kind) "
            "ORDER BY ts_rank(search_words.words, asked) DESC, search.name DESC LIMIT :most"
        )
        asked = " & ".join(f"({self._one(phrase)})" for phrase in phrases)
        rows = connection.execute(query, {"asked": asked, "kind": kind or "", "most": MAX_FOUND})
        return [(row[0], row[1]) for row in rows]

    @staticmethod
    def _one(phrase: Phrase) -> str:
        words = [f"'{word}'" for word in phrase.words]
        return " <-> ".join([*words[:-1], words[-1] + (":*" if phrase.is_prefix else "")])
