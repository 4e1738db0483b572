"""Tell a client which chunks are stored, without telling it what it doesn't hold itself.

The answer is a shard of an empty file section and the xorbs, with a footer. Chunk hashes in it are hashed again
under a key of this one answer: they match what the client has, and name nothing else. Chunks that the client may
not read keep their place in the list, as random bytes of no length.
"""

import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from blake3 import blake3

from storage.xet.hashes import DIGEST_BYTES, Digest
from storage.xet.reconstruction import ChunkRange
from storage.xet.shards import BOOKEND, ENTRY, HEADER, MAGIC, VERSION
from storage.xet.tables import ChunkTable

FOOTER_BYTES = 200
_FOOTER = struct.Struct("<9Q32s12Q")


@dataclass(frozen=True, slots=True)
class Offer:
    """A stored xorb and the ranges of its chunks, in order, that the client may read."""

    xorb: Digest
    table: ChunkTable
    readable: Sequence[ChunkRange]

    @property
    def end(self) -> int:
        """Say behind which chunk nothing more is told."""
        return self.readable[-1].end


def sampled(digests: bytes) -> Iterator[Digest]:
    """Yield those of the concatenated digests that clients ask for wherever they stand in a file.

    It is one in 1,024: the last word's ten low bits are zero.
    """
    low, high = digests[24::DIGEST_BYTES], digests[25::DIGEST_BYTES]
    at = low.find(0)
    while at >= 0:
        if high[at] % 4 == 0:
            yield Digest(digests[at * DIGEST_BYTES : (at + 1) * DIGEST_BYTES])
        at = low.find(0, at + 1)


def serialise_answer(offers: Iterable[Offer], *, created_s: int, expires_s: int) -> bytes:
    """Write the answer; clients forget it at `expires_s`. Both times in Unix seconds."""
    key = secrets.token_bytes(32)
    answer = bytearray(HEADER.pack(MAGIC, VERSION, FOOTER_BYTES) + BOOKEND)
    xorbs_at, stored, unpacked = len(answer), 0, 0
    for offer in offers:
        stored += offer.table.stored_bytes
        unpacked += offer.table.size_bytes
        _append(answer, offer, key)
    answer += BOOKEND
    end = len(answer)
    lookups = (end, 0) * 3
    times = (created_s, expires_s, 0, 0, 0, 0, 0, 0)
    answer += _FOOTER.pack(1, HEADER.size, xorbs_at, *lookups, key, *times, stored, unpacked, stored, end)
    return bytes(answer)


def _append(answer: bytearray, offer: Offer, key: bytes) -> None:
    entries = list(_entries(offer, key))
    total = sum(length for _, length in entries)
    answer += ENTRY.pack(offer.xorb, 0, len(entries), total, offer.table.stored_ends[offer.end])
    position = 0
    for name, length in entries:
        answer += ENTRY.pack(name, position, length, 0, 0)
        position += length


def _entries(offer: Offer, key: bytes) -> Iterator[tuple[bytes, int]]:
    position = 0
    for chunks in offer.readable:
        for _ in range(position, chunks.start):
            yield secrets.token_bytes(32), 0
        for digest, length in offer.table.nodes(chunks.start, chunks.end):
            yield blake3(digest, key=key).digest(), length
        position = chunks.end
