"""Answer a client that asks for a chunk with all that the file which it was seen in is made of.

One xorb for each hit would leave the rest of the file to be sent again; the whole group leaves nothing.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session, col, select

from storage.local import claims, contents, xorbs
from storage.local.claims import Claimed
from storage.local.reach import Reach
from storage.local.rows import ContentRow, SeenChunkRow
from storage.xet.dedup import Offer, serialise_answer
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.reconstruction import ChunkRange, join
from storage.xet.shards import Term
from storage.xet.terms import parse_terms

ANSWER_LIFE = timedelta(days=14)
"""How long clients rely on an answer; well below the time for which what it names can't be swept."""

MENTION_AGAIN = timedelta(days=1)
MAX_OFFERED_CHUNKS = 1 << 18
"""Most chunks of one answer: 16 GiB in chunks of 64 KiB, told in 12 MB."""


@dataclass(frozen=True)
class Found:
    """A content that holds a chunk and that the asking writer could read."""

    content: str
    terms: Sequence[Term]
    mentioned_at: datetime

    def is_fresh(self, now: datetime) -> bool:
        """Tell whether it was mentioned lately enough to be relied on."""
        return now - self.mentioned_at < MENTION_AGAIN


def find(reach: Reach, chunk: Digest) -> Found | None:
    """Find the newest content within reach that a chunk was seen in."""
    newest = (
        select(ContentRow.digest)
        .join(SeenChunkRow, col(ContentRow.digest) == col(SeenChunkRow.content))
        .where(SeenChunkRow.chunk == to_text(chunk), reach.opens(col(SeenChunkRow.content)))
        .order_by(col(ContentRow.stored_at).desc())
        .limit(1)
    )
    query = select(ContentRow.digest, ContentRow.terms, ContentRow.mentioned_at)
    row = reach.session.exec(query.where(col(ContentRow.digest).in_(newest))).first()
    return None if row is None else Found(row[0], parse_terms(row[1]), row[2])


def is_relied_on(reach: Reach, found: Found, *, now: datetime) -> bool:
    """Tell whether the bucket may build on a content for as long as an answer lives, without another note of it."""
    kinds = (Claimed.CONTENT, Claimed.OFFERED)
    held = any(claims.held(reach.session, reach.bucket_id, kind, {found.content}) for kind in kinds)
    return held and found.is_fresh(now)


def note(session: Session, bucket_id: int, found: Found, *, now: datetime) -> None:
    """Let a bucket build on a content from now on, whatever becomes of the file that it was read in."""
    contents.mention(session, {found.content}, now=now)
    claims.add(session, bucket_id, Claimed.OFFERED, [found.content])


def answer(reach: Reach, found: Found, chunk: Digest, *, now: datetime) -> bytes | None:
    """Write what the client is told; None where what is stored of the content tells it nothing."""
    offers = _around(_offers(reach, found.terms, chunk), chunk)
    if not offers:
        return None
    created_s = int(now.timestamp())
    return serialise_answer(offers, created_s=created_s, expires_s=created_s + int(ANSWER_LIFE.total_seconds()))


def _offers(reach: Reach, terms: Sequence[Term], chunk: Digest) -> Iterator[Offer]:
    """Yield an offer for each xorb of a content, one table in memory at a time."""
    ranges: dict[Digest, list[ChunkRange]] = {}
    for term in terms:
        ranges.setdefault(term.xorb, []).append(ChunkRange(term.start, term.end))
    own = {from_text(name) for name in reach.xorbs([to_text(xorb) for xorb in ranges])}
    for xorb, parts in ranges.items():
        table = xorbs.find_tables(reach.session, {xorb}).get(xorb)
        # A xorb of one chunk has the chunk's own name: told unasked, it would betray the chunk.
        if table is not None and (len(table) > 1 or xorb == chunk):
            yield Offer(xorb, table, [ChunkRange(0, len(table))] if xorb in own else join(parts))


def _around(offers: Iterable[Offer], chunk: Digest) -> list[Offer]:
    """Keep as many offers as an answer holds, the one with the chunk among them."""
    kept: deque[Offer] = deque()
    total, is_seen = 0, False
    for offer in offers:
        kept.append(offer)
        total += offer.end
        is_seen = is_seen or offer.table.find(chunk) is not None
        while total > MAX_OFFERED_CHUNKS and not is_seen:
            total -= kept.popleft().end
        if total > MAX_OFFERED_CHUNKS:
            break
    return list(kept) if is_seen else []
