"""Pack and unpack one chunk of a xorb.

`u8 version=0 | u24 packed length | u8 scheme | u24 length | payload`, little-endian. Schemes: 0 as it is,
1 an LZ4 frame, 2 an LZ4 frame over bytes grouped by their index modulo four (kind to float32 weights).
"""

from dataclasses import dataclass
from enum import IntEnum

import lz4.frame

from storage.xet.errors import InvalidXet

HEADER_BYTES = 8
MAX_CHUNK_BYTES = 131_072
MAX_PACKED_BYTES = 262_144


class Scheme(IntEnum):
    """How a chunk's payload is stored."""

    PLAIN = 0
    LZ4 = 1
    GROUPED_LZ4 = 2


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """What the eight bytes before a payload say; lengths in bytes."""

    packed_length: int
    scheme: Scheme
    length: int


def parse_header(raw: bytes) -> ChunkHeader:
    """Read a chunk header and hold it to the limits."""
    if len(raw) != HEADER_BYTES:
        raise InvalidXet("The xorb ends inside a chunk header.")
    if raw[0] != 0:
        raise InvalidXet(f"Chunk format version {raw[0]} is unknown.")
    if raw[4] not in (0, 1, 2):
        raise InvalidXet(f"Compression scheme {raw[4]} is unknown.")
    packed_length, length = int.from_bytes(raw[1:4], "little"), int.from_bytes(raw[5:8], "little")
    if not (0 < length <= MAX_CHUNK_BYTES and 0 < packed_length <= MAX_PACKED_BYTES):
        raise InvalidXet(f"A chunk of {length} bytes stored in {packed_length} is outside the limits.")
    return ChunkHeader(packed_length, Scheme(raw[4]), length)


def pack(data: bytes, scheme: Scheme | None = None) -> bytes:
    """Return header and payload for `data`; without a `scheme`, LZ4 where it saves a tenth."""
    if not (0 < len(data) <= MAX_CHUNK_BYTES):
        raise InvalidXet(f"A chunk of {len(data)} bytes is outside the limits.")
    if scheme is None:
        return _pack_smaller(data)
    payload = data if scheme is Scheme.PLAIN else _compress(group(data) if scheme is Scheme.GROUPED_LZ4 else data)
    return _with_header(payload, scheme, len(data))


def unpack(header: ChunkHeader, payload: bytes) -> bytes:
    """Return the chunk's own bytes; never more than the header promised, whatever the payload holds."""
    if len(payload) != header.packed_length:
        raise InvalidXet("The xorb ends inside a chunk.")
    data = payload if header.scheme is Scheme.PLAIN else _decompress(payload, header.length)
    if len(data) != header.length:
        raise InvalidXet(f"A chunk holds {len(data)} bytes where its header says {header.length}.")
    return ungroup(data) if header.scheme is Scheme.GROUPED_LZ4 else data


def group(data: bytes) -> bytes:
    """Put all bytes at index 0 modulo 4 first, then 1, 2 and 3."""
    return b"".join(data[i::4] for i in range(4))


def ungroup(data: bytes) -> bytes:
    """Undo `group`."""
    result, start = bytearray(len(data)), 0
    for i in range(4):
        count = len(range(i, len(data), 4))
        result[i::4] = data[start : start + count]
        start += count
    return bytes(result)


def _pack_smaller(data: bytes) -> bytes:
    payload = _compress(data)
    if len(payload) * 10 < len(data) * 9:
        return _with_header(payload, Scheme.LZ4, len(data))
    return _with_header(data, Scheme.PLAIN, len(data))


def _with_header(payload: bytes, scheme: Scheme, length: int) -> bytes:
    header = b"\0" + len(payload).to_bytes(3, "little") + bytes((scheme,)) + length.to_bytes(3, "little")
    return header + payload


def _compress(data: bytes) -> bytes:
    return bytes(lz4.frame.compress(data, store_size=False))


def _decompress(payload: bytes, length: int) -> bytes:
    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:  # one byte more than promised: a bomb is seen without being unrolled
        data = bytes(decompressor.decompress(payload, max_length=length + 1))
    except (RuntimeError, EOFError, ValueError, MemoryError) as error:
        raise InvalidXet("A chunk is not a valid LZ4 frame.") from error
    if not decompressor.eof or decompressor.unused_data:
        raise InvalidXet("A chunk's LZ4 frame does not end where the chunk does.")
    return data
