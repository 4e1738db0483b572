"""Build honest xorbs, shards and claims, for tests to use or to spoil."""

import random
import struct
from io import BytesIO

from storage.xet.chunks import Scheme, pack
from storage.xet.hashes import Digest, chunk_hash, file_hash, term_hash
from storage.xet.shards import FileClaim, Term
from storage.xet.tables import ChunkTable
from storage.xet.xorbs import serialise_xorb, verify_xorb


def noise(length: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(length)


def xorb(pieces: list[bytes]) -> tuple[bytes, ChunkTable, Digest]:
    raw, table = serialise_xorb(pieces)
    return raw, table, table.xorb_hash()


def xorb_of_schemes(pieces: list[tuple[bytes, Scheme]]) -> bytes:
    return b"".join(pack(data, scheme) for data, scheme in pieces)


def claim(table: ChunkTable, start: int = 0, end: int | None = None) -> FileClaim:
    """Claim the file that chunks `start..end` of one xorb make."""
    stop = len(table) if end is None else end
    term = Term(table.xorb_hash(), start, stop, table.length(start, stop))
    proof = term_hash(table.raw_digests(start, stop))
    return FileClaim(file_hash(list(table.nodes(start, stop))), (term,), (proof,))


def parse(raw: bytes, name: Digest) -> ChunkTable:
    return verify_xorb(BytesIO(raw), name)


def name_of(pieces: list[bytes]) -> Digest:
    return serialise_xorb(pieces)[1].xorb_hash()


def footer(table: ChunkTable) -> bytes:
    """Write the footer that some clients put behind the chunks."""
    count = len(table)
    hashes = b"XBLBHSH" + b"\0" + struct.pack("<I", count) + table.digests
    bounds = b"XBLBBND" + b"\1" + struct.pack("<I", count)
    bounds += struct.pack(f"<{count}I", *table.stored_ends[1:]) + struct.pack(f"<{count}I", *table.unpacked_ends[1:])
    tail = struct.pack("<III", count, len(hashes) + len(bounds) + 28, len(bounds) + 28) + bytes(16)
    return b"XETBLOB" + b"\1" + table.xorb_hash() + hashes + bounds + tail


def file_of(pieces: list[bytes]) -> Digest:
    return file_hash([(chunk_hash(piece), len(piece)) for piece in pieces])
