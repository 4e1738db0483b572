"""Keep what we know about a xorb's chunks, 40 bytes each, in memory as on disk.

Stored form: all digests, then a `u32` end offset per chunk in the serialised xorb, then a `u32` end offset
per chunk in the unpacked bytes, little-endian. Every sum over a range of chunks is two look-ups.
"""

import sys
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from operator import sub

from storage.xet.errors import InvalidXet
from storage.xet.hashes import DIGEST_BYTES, Digest, Stretch, merkle_root_of

_BYTES_PER_CHUNK = DIGEST_BYTES + 4 + 4


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """The verified chunks of one xorb: raw digests and end offsets, each array one longer with a leading 0."""

    digests: bytes
    stored_ends: "array[int]"  # quoted: subscriptable only for type checkers before Python 3.12
    unpacked_ends: "array[int]"

    def __len__(self) -> int:
        """Count the chunks."""
        return len(self.stored_ends) - 1

    @property
    def size_bytes(self) -> int:
        """Say how many bytes the chunks hold uncompressed."""
        return self.unpacked_ends[-1]

    @property
    def stored_bytes(self) -> int:
        """Say how long the serialised xorb is, without any footer."""
        return self.stored_ends[-1]

    def digest(self, index: int) -> Digest:
        """Return the digest of one chunk."""
        return Digest(self.digests[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES])

    def find(self, digest: Digest) -> int | None:
        """Return the index of the first chunk of that digest."""
        at = self.digests.find(digest)
        while at >= 0 and at % DIGEST_BYTES:
            at = self.digests.find(digest, at + 1)
        return at // DIGEST_BYTES if at >= 0 else None

    def raw_digests(self, start: int, end: int) -> bytes:
        """Return the concatenated digests of chunks `start..end`, end exclusive."""
        return self.digests[start * DIGEST_BYTES : end * DIGEST_BYTES]

    def nodes(self, start: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int]]:
        """Yield `(digest, length_bytes)` for chunks `start..end`, end exclusive."""
        for i in range(start, len(self) if end is None else end):
            yield self.digest(i), self.unpacked_ends[i + 1] - self.unpacked_ends[i]

    def stretch(self, start: int = 0, end: int | None = None) -> Stretch:
        """Return digests and lengths of chunks `start..end`, end exclusive."""
        stop = len(self) if end is None else end
        ends = self.unpacked_ends[start : stop + 1]
        return Stretch(self.raw_digests(start, stop), [*map(sub, ends[1:], ends)])

    def length(self, start: int, end: int) -> int:
        """Return how many unpacked bytes chunks `start..end` hold, end exclusive."""
        return self.unpacked_ends[end] - self.unpacked_ends[start]

    def stored_length(self, index: int) -> int:
        """Return how many bytes of the serialised xorb one chunk takes, header included."""
        return self.stored_ends[index + 1] - self.stored_ends[index]

    def xorb_hash(self) -> Digest:
        """Name the xorb that holds exactly these chunks."""
        return merkle_root_of([self.stretch()])

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return self.digests + _little(self.stored_ends[1:]).tobytes() + _little(self.unpacked_ends[1:]).tobytes()


class TableBuilder:
    """Collect chunks in order into a `ChunkTable`."""

    def __init__(self) -> None:
        """Start without chunks."""
        self._digests = bytearray()
        self._stored = array("I", [0])
        self._unpacked = array("I", [0])

    def __len__(self) -> int:
        """Count the chunks so far."""
        return len(self._stored) - 1

    @property
    def stored_bytes(self) -> int:
        """Say how long the serialised xorb is so far."""
        return self._stored[-1]

    @property
    def unpacked_bytes(self) -> int:
        """Say how many bytes the chunks so far hold uncompressed."""
        return self._unpacked[-1]

    def add(self, digest: Digest, *, stored_length: int, length: int) -> None:
        """Append one chunk; `stored_length` counts its header, both in bytes."""
        self._digests += digest
        self._stored.append(self._stored[-1] + stored_length)
        self._unpacked.append(self._unpacked[-1] + length)

    def build(self) -> ChunkTable:
        """Return the table of everything added."""
        return ChunkTable(bytes(self._digests), self._stored, self._unpacked)


def parse_table(raw: bytes) -> ChunkTable:
    """Read the stored form of a table."""
    count, rest = divmod(len(raw), _BYTES_PER_CHUNK)
    if rest:
        raise InvalidXet("A chunk table is cut short.")
    ends = _little(array("I", raw[count * DIGEST_BYTES :]))
    return ChunkTable(raw[: count * DIGEST_BYTES], array("I", [0]) + ends[:count], array("I", [0]) + ends[count:])


def _little(values: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        values = values[:]
        values.byteswap()
    return values
