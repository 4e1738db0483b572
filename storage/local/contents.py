"""Register whole files and read them back, every chunk checked on its way out."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session, col, select

from storage.errors import Corrupt
from storage.local import upserts, xorbs
from storage.local.blobs import Blobs
from storage.local.rows import ContentRow
from storage.xet.errors import InvalidXet
from storage.xet.hashes import ZERO, Digest, to_text
from storage.xet.reconstruction import plan
from storage.xet.shards import Term
from storage.xet.tables import ChunkTable
from storage.xet.terms import pack_terms, parse_terms
from storage.xet.xorbs import read_verified

EMPTY = to_text(ZERO)


@dataclass(frozen=True, slots=True)
class Content:
    """A verified file: its size in bytes and where its chunks are."""

    digest: Digest
    size: int
    terms: Sequence[Term]

    @property
    def name(self) -> str:
        """The digest in its text form."""
        return to_text(self.digest)


@dataclass(frozen=True, slots=True)
class Readable:
    """A content with the tables of its xorbs: all that reading needs, without a database."""

    size: int
    terms: Sequence[Term]
    tables: dict[Digest, ChunkTable]


def register(session: Session, contents: Iterable[Content], *, now: datetime) -> None:
    """Record verified files; one that is here keeps the terms it has."""
    rows = [
        {"digest": to_text(c.digest), "size": c.size, "terms": pack_terms(c.terms), "stored_at": now} for c in contents
    ]
    upserts.insert_new(session, ContentRow, rows)


def sizes(session: Session, digests: Collection[str]) -> dict[str, int]:
    """Return the size in bytes of each known content; the empty file is always known."""
    found = {EMPTY: 0}
    for some in upserts.slices(sorted(digests)):
        query = select(ContentRow.digest, ContentRow.size).where(col(ContentRow.digest).in_(some))
        found.update(session.exec(query).all())
    return found


def load(session: Session, digest: str) -> Readable:
    """Load what is needed to read a content.

    Raises:
        Corrupt: it isn't recorded.
    """
    if digest == EMPTY:
        return Readable(0, (), {})
    row = session.exec(select(ContentRow.size, ContentRow.terms).where(ContentRow.digest == digest)).first()
    if row is None:
        raise Corrupt(f"The content {digest} is named by a file but not recorded.")
    terms = parse_terms(row[1])
    return Readable(row[0], terms, xorbs.tables(session, {term.xorb for term in terms}))


def stream(files: Blobs, content: Readable, start: int, end: int) -> Iterator[bytes]:
    """Yield bytes `start..end` (end exclusive) chunk by chunk, each checked against its hash first.

    Raises:
        Corrupt: before anything wrong would be yielded.
    """
    wanted = plan(content.terms, content.tables, start, end)
    skip, left = wanted.skip, end - start
    for term in wanted.terms:
        for data in _read_term(files, term, content.tables[term.xorb]):
            piece = data[skip : skip + left]
            skip, left = 0, left - len(piece)
            yield piece


def _read_term(files: Blobs, term: Term, table: ChunkTable) -> Iterator[bytes]:
    name = to_text(term.xorb)
    with files.open(name) as file:
        try:
            for chunk in read_verified(file, table, term.start, term.end):
                yield chunk.data
        except InvalidXet as error:
            raise Corrupt(f"The stored xorb {name} is damaged.") from error
