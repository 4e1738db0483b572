"""Register whole files and read them back, every chunk checked on its way out."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlmodel import Session, col, select

from storage import quota_meter
from storage.errors import Corrupt
from storage.local import mentions, upserts, xorbs
from storage.local.blobs import Blobs
from storage.local.rows import ContentRow, ContentXorbRow, SeenChunkRow
from storage.xet.dedup import sampled
from storage.xet.errors import InvalidXet
from storage.xet.files import count_chunks
from storage.xet.hashes import DIGEST_BYTES, ZERO, Digest, to_text
from storage.xet.reconstruction import plan
from storage.xet.shards import Term
from storage.xet.tables import ChunkTable
from storage.xet.terms import pack_terms, parse_terms
from storage.xet.xorbs import read_verified

EMPTY = to_text(ZERO)

_SEEN_AT_LEAST, _CHUNKS_PER_SEEN = 16, 256
"""Noted of one content are at most 16 chunks and one in 256; honest ones have one in 1,024 and the first."""


@dataclass(frozen=True, slots=True)
class Content:
    """A verified file: its size in bytes, its packed terms, their xorbs, and the chunks that clients ask for."""

    digest: Digest
    size: int
    terms: bytes
    xorbs: frozenset[str]
    seen: tuple[str, ...]

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


def verified(digest: Digest, size: int, terms: Sequence[Term], digests: Iterable[bytes]) -> Content:
    """Pack a file that was found to be what it claims; `digests` are those of all its chunks, any number to a piece."""
    most = _SEEN_AT_LEAST + count_chunks(terms) // _CHUNKS_PER_SEEN
    seen = dict.fromkeys(to_text(chunk) for chunk in islice(_asked_for(digests), most))
    return Content(digest, size, pack_terms(terms), frozenset(to_text(term.xorb) for term in terms), tuple(seen))


def _asked_for(digests: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the first chunk and every one that clients ask for wherever it stands."""
    for number, piece in enumerate(digests):
        if number == 0:
            yield piece[:DIGEST_BYTES]
        yield from sampled(piece)


def register(session: Session, contents: Iterable[Content], *, now: datetime) -> None:
    """Record verified files; one that is here keeps the terms it has, and is mentioned."""
    given = {content.name: content for content in contents}
    quota_meter.recast(session, sorted(given.keys() - sizes(session, given).keys()))  # meters before contents, as ever
    mention(session, given, now=now)
    here = sizes(session, given)
    fresh = [content for name, content in given.items() if name not in here]
    stamps = {"stored_at": now, "mentioned_at": now}
    rows = [{"digest": content.name, "size": content.size, "terms": content.terms} | stamps for content in fresh]
    upserts.insert_new(session, ContentRow, rows)
    xorbs_of = [{"xorb": xorb, "content": content.name} for content in fresh for xorb in content.xorbs]
    upserts.insert_new(session, ContentXorbRow, xorbs_of)
    seen_in = [{"chunk": chunk, "content": content.name} for content in fresh for chunk in content.seen]
    upserts.insert_new(session, SeenChunkRow, seen_in)


def mention(session: Session, digests: Collection[str], *, now: datetime) -> int:
    """Note that contents were named just now, and count those that are here, the empty file aside.

    Until the transaction ends none of them can be swept.
    """
    return mentions.mention(session, ContentRow, set(digests) - {EMPTY}, now=now)


def hold(session: Session, digests: Collection[str], *, now: datetime) -> None:
    """Make sure that contents are here and stay until the transaction ends.

    Raises:
        Corrupt: one isn't.
    """
    if mention(session, digests, now=now) != len(set(digests) - {EMPTY}):
        raise Corrupt("A file that was to be copied has lost its bytes.", hint="Upload it again.")


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
        raise Corrupt(
            f"The bytes of this file (content {digest}) were found damaged or lost and are set aside.",
            hint="Upload the file again.",
        )
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
