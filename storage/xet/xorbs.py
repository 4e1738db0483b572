"""Read, verify and write serialised xorbs: up to 8,192 chunks, one after the other, of at most 64 MiB together.

A footer (`XETBLOB…`, where the next chunk header would be) repeats what the chunks already say; it is
tolerated and ignored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from storage.xet.chunks import HEADER_BYTES, pack, parse_header, unpack
from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest, chunk_hash
from storage.xet.tables import ChunkTable, TableBuilder

MAX_XORB_CHUNKS = 8192
MAX_XORB_BYTES = 64 * 1024 * 1024 + MAX_XORB_CHUNKS * 48 + 1024
"""Clients fill a xorb with up to 64 MiB of data; headers, and a footer's 40 bytes per chunk, come on top."""
MAX_UNPACKED_BYTES = 2 * 64 * 1024 * 1024
"""Most bytes of all chunks unpacked, twice what clients put in: 8,192 full chunks of zeros would cost two seconds."""
_FOOTER_IDENT = b"XETBLOB"


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """One chunk as it lies in a xorb (`raw`, header included) and what it holds (`data`)."""

    raw: bytes
    data: bytes


def read_chunks(stream: BinaryIO) -> Iterator[StoredChunk]:
    """Yield the chunks from the stream's position to the footer or the end, checking form but not hashes.

    Raises:
        InvalidXet: at the first malformed chunk.
    """
    while head := stream.read(HEADER_BYTES):
        if head.startswith(_FOOTER_IDENT):
            return
        yield _read_body(head, stream)


def verify_xorb(stream: BinaryIO, name: Digest) -> ChunkTable:
    """Decode every chunk of a xorb and return its table, if the chunks add up to `name`.

    Holds one chunk in memory at a time; the stream is left behind the last chunk or its footer's start.

    Raises:
        InvalidXet: if anything is malformed, too large, or hashes to another name.
    """
    table = TableBuilder()
    for chunk in read_chunks(stream):
        table.add(chunk_hash(chunk.data), stored_length=len(chunk.raw), length=len(chunk.data))
        if not (len(table) <= MAX_XORB_CHUNKS and table.stored_bytes <= MAX_XORB_BYTES):
            raise InvalidXet(f"A xorb holds at most {MAX_XORB_CHUNKS} chunks in {MAX_XORB_BYTES} bytes.")
        if not (table.unpacked_bytes <= MAX_UNPACKED_BYTES):
            raise InvalidXet(f"A xorb holds at most {MAX_UNPACKED_BYTES} bytes unpacked.")
    if not len(table):
        raise InvalidXet("A xorb holds at least one chunk.")
    built = table.build()
    if built.xorb_hash() != name:
        raise InvalidXet("The xorb's chunks do not hash to its name.")
    return built


def read_verified(stream: BinaryIO, table: ChunkTable, start: int, end: int) -> Iterator[StoredChunk]:
    """Yield chunks `start..end` (end exclusive), each only after it matched its digest in the table.

    Raises:
        InvalidXet: before a damaged chunk would be yielded; those before it are whole.
    """
    stream.seek(table.stored_ends[start])
    for index in range(start, end):
        chunk = _read_body(stream.read(HEADER_BYTES), stream)
        if chunk_hash(chunk.data) != table.digest(index) or len(chunk.raw) != table.stored_length(index):
            raise InvalidXet(f"Chunk {index} of a stored xorb no longer matches its hash.")
        yield chunk


def serialise_xorb(pieces: list[bytes]) -> tuple[bytes, ChunkTable]:
    """Pack pieces into a xorb without footer; return its bytes and its table."""
    table, packed = TableBuilder(), []
    for piece in pieces:
        packed.append(pack(piece))
        table.add(chunk_hash(piece), stored_length=len(packed[-1]), length=len(piece))
    return b"".join(packed), table.build()


def _read_body(head: bytes, stream: BinaryIO) -> StoredChunk:
    header = parse_header(head)
    payload = stream.read(header.packed_length)
    return StoredChunk(head + payload, unpack(header, payload))
