"""Compute the hashes that name chunks, xorbs and files.

A digest is 32 raw bytes. Its text form is four little-endian 64-bit words, each printed as `%016x`, so
`bytes(range(32))` reads `0706050403020100` `0f0e0d0c0b0a0908` … and is not plain byte hex.
"""

import re
import struct
from collections.abc import Sequence
from typing import NewType

from blake3 import blake3

from storage.xet.errors import InvalidXet

Digest = NewType("Digest", bytes)
Buffer = bytes | bytearray | memoryview

DIGEST_BYTES = 32
ZERO = Digest(bytes(DIGEST_BYTES))  # the name of the empty file

_CHUNK_KEY = bytes.fromhex("6697f5775b9550de3135cbaca597181c9de421109beb2b58b4d0b04b93adf229")
_NODE_KEY = bytes.fromhex("017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f")
_TERM_KEY = bytes.fromhex("7f1857d6ce56ed66127ff913e7a5c3f3a4cd26d5b5db49e64124987f28fb94c3")
_WORDS = struct.Struct("<4Q")
_TEXT_FORM = re.compile(r"[0-9a-f]{64}")


def to_text(digest: bytes) -> str:
    """Print a digest in its 64-character form."""
    return "{:016x}{:016x}{:016x}{:016x}".format(*_WORDS.unpack(digest))


def from_text(text: str) -> Digest:
    """Read the 64-character form of a digest."""
    if not _TEXT_FORM.fullmatch(text):
        raise InvalidXet("A hash is 64 lower-case hexadecimal digits.")
    return Digest(_WORDS.pack(*(int(text[i : i + 16], 16) for i in range(0, 64, 16))))


def chunk_hash(data: Buffer) -> Digest:
    """Name one uncompressed chunk."""
    return Digest(blake3(data, key=_CHUNK_KEY).digest())


def term_hash(chunk_hashes: Buffer) -> Digest:
    """Prove knowledge of a term's chunks: `chunk_hashes` is their raw digests, concatenated."""
    return Digest(blake3(chunk_hashes, key=_TERM_KEY).digest())


def file_hash(nodes: Sequence[tuple[bytes, int]]) -> Digest:
    """Name a file by its chunks, each `(digest, length_bytes)`, in order; no chunks is the empty file."""
    if not nodes:
        return ZERO
    return Digest(blake3(merkle_root(nodes), key=ZERO).digest())


def merkle_root(nodes: Sequence[tuple[bytes, int]]) -> Digest:
    """Fold `(digest, length_bytes)` nodes into one digest; a single node is its own root.

    Levels are cut where a node's last word is divisible by four, so that an edit moves few groups.
    """
    if not nodes:
        return ZERO
    while len(nodes) > 1:
        nodes = _next_level(nodes)
    return Digest(nodes[0][0])


def _next_level(nodes: Sequence[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
    level, start = [], 0
    while start < len(nodes):
        end = _group_end(nodes, start)
        level.append(_merge(nodes[start:end]))
        start = end
    return level


def _group_end(nodes: Sequence[tuple[bytes, int]], start: int) -> int:
    if len(nodes) - start <= 2:
        return len(nodes)
    limit = min(start + 9, len(nodes))
    for i in range(start + 2, limit):
        if nodes[i][0][24] % 4 == 0:  # byte 24 is the low byte of the last little-endian word
            return i + 1
    return limit


def _merge(group: Sequence[tuple[bytes, int]]) -> tuple[bytes, int]:
    lines = "".join(f"{to_text(digest)} : {length}\n" for digest, length in group)
    return blake3(lines.encode(), key=_NODE_KEY).digest(), sum(length for _, length in group)
