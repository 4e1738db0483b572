"""Read and write the upload form of a shard: how files are put together from xorbs.

A 48-byte header, then 48-byte records. File section: `file hash | flags | term count | 0`, its terms, their
verification hashes (flag bit 31), its SHA-256 (flag bit 30). Xorb section: `xorb hash | flags | chunk count |
unpacked | stored` and one record per chunk. Each section ends in a record that starts with 32 bytes of 0xFF.
What the xorb section claims is never used: we derive all of it from the xorbs themselves.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest

RECORD_BYTES = 48
_SKIPPED_AT_ONCE = 4096
MAGIC = b"HFRepoMetaData\0" + bytes.fromhex("556967456a7b815783a5bdd95ccdd14aa9")
VERSION = 2
HEADER = struct.Struct("<32sQQ")
ENTRY = struct.Struct("<32sIIII")
_LAST = b"\xff" * 32
_HAS_PROOFS = 1 << 31
_HAS_SHA256 = 1 << 30
BOOKEND = ENTRY.pack(_LAST, 0, 0, 0, 0)

MAX_FILE_TERMS = 1 << 16
"""Most terms of one file. A client that finds half of a file elsewhere makes one for some sixteen chunks."""

MAX_XORBS = 1 << 14
"""Most xorbs that a shard describes: a terabyte of them."""


@dataclass(frozen=True, slots=True)
class Term:
    """Chunks `start..end` (end exclusive) of one xorb, as a piece of a file; `length` in bytes."""

    xorb: Digest
    start: int
    end: int
    length: int


@dataclass(frozen=True, slots=True)
class FileClaim:
    """What an uploader says about one file; `proofs` holds one verification hash per term."""

    digest: Digest
    terms: tuple[Term, ...]
    proofs: tuple[Digest, ...]


def read_files(stream: BinaryIO, size_bytes: int) -> Iterator[FileClaim]:
    """Yield the file claims of a shard of `size_bytes`, then check that a whole xorb section follows.

    No count is believed before that many records were seen to fit in what is left.

    Raises:
        InvalidXet: at the first malformed record; a file without proofs is one.
    """
    records = _Records(stream, size_bytes)
    records.header()
    while (entry := records.entry())[0] != _LAST:
        yield _read_claim(records, entry)
    number = 0
    while (entry := records.entry())[0] != _LAST:
        number += 1
        if not (number <= MAX_XORBS):
            raise InvalidXet(f"A shard describes at most {MAX_XORBS} xorbs.")
        records.skip(entry[2])


def serialise(files: Sequence[FileClaim]) -> bytes:
    """Write an upload shard that describes no xorbs, as a client does whose xorbs are all known."""
    parts = [HEADER.pack(MAGIC, VERSION, 0)]
    for claim in files:
        parts.append(ENTRY.pack(claim.digest, _HAS_PROOFS, len(claim.terms), 0, 0))
        parts += [ENTRY.pack(term.xorb, 0, term.length, term.start, term.end) for term in claim.terms]
        parts += [ENTRY.pack(proof, 0, 0, 0, 0) for proof in claim.proofs]
    return b"".join([*parts, BOOKEND, BOOKEND])


def _read_claim(records: "_Records", entry: tuple[bytes, int, int, int, int]) -> FileClaim:
    digest, flags, count = entry[:3]
    if not (count <= MAX_FILE_TERMS):
        raise InvalidXet(f"The shard announces a file of {count} terms; it may have {MAX_FILE_TERMS}.")
    terms = tuple(
        Term(Digest(xorb), start, end, length)
        for xorb, _, length, start, end in ENTRY.iter_unpack(records.block(count))
    )
    if count and not flags & _HAS_PROOFS:
        raise InvalidXet("A file in the shard comes without verification hashes.")
    proofs = records.block(count) if flags & _HAS_PROOFS else b""
    if flags & _HAS_SHA256:
        records.block(1)
    return FileClaim(Digest(digest), terms, tuple(Digest(proof) for proof, *_ in ENTRY.iter_unpack(proofs)))


class _Records:
    """Take 48-byte records from a stream, never more than the shard's stated size holds."""

    def __init__(self, stream: BinaryIO, size_bytes: int) -> None:
        self._stream = stream
        self._left = size_bytes // RECORD_BYTES

    def header(self) -> None:
        magic, version, _footer_bytes = HEADER.unpack(self.block(1))
        if magic != MAGIC or version != VERSION:
            raise InvalidXet("This is not a shard of version 2.")

    def entry(self) -> tuple[bytes, int, int, int, int]:
        digest, flags, first, second, third = ENTRY.unpack(self.block(1))
        return digest, flags, first, second, third

    def skip(self, count: int) -> None:
        self._see(count)
        for start in range(0, count, _SKIPPED_AT_ONCE):  # nobody needs them, and there may be a million
            self.block(min(_SKIPPED_AT_ONCE, count - start))

    def _see(self, count: int) -> None:
        if not (count <= self._left):
            raise InvalidXet(f"The shard announces {count} records where {self._left} are left.")

    def block(self, count: int) -> bytes:
        self._see(count)
        self._left -= count
        raw = self._stream.read(count * RECORD_BYTES)
        if len(raw) != count * RECORD_BYTES:
            raise InvalidXet("The shard is cut short.")
        return raw
