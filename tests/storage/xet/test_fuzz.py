"""Whatever bytes come in, parsing ends in a value or in the one declared error, and holds little memory.

Runs for `PADDOCK_FUZZ_S` seconds in all (default 60), shared out among the targets.
"""

import os
import struct
import time
from collections.abc import Callable
from io import BytesIO

import lz4.frame
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.xet.chunks import MAX_CHUNK_BYTES, Scheme
from storage.xet.errors import InvalidXet
from storage.xet.shards import RECORD_BYTES, read_files, serialise
from storage.xet.tables import parse_table
from storage.xet.xorbs import verify_xorb
from tests.storage.xet.builders import claim, footer, noise, xorb, xorb_of_schemes

BUDGET_S = float(os.environ.get("PADDOCK_FUZZ_S", "60"))

PIECES = [noise(70, 1), b"abcd" * 300, noise(4, 2), bytes(2000)]
XORB = xorb_of_schemes(list(zip(PIECES, [Scheme.PLAIN, Scheme.LZ4, Scheme.GROUPED_LZ4, Scheme.LZ4], strict=True)))
NAME = xorb(PIECES)[2]
TABLE = xorb(PIECES)[1]
SHARD = serialise([claim(TABLE), claim(TABLE, 1, 3), claim(TABLE, 0, 1)])
WORDS = st.sampled_from([0, 1, 2, 47, 48, 255, 2**16 - 1, 2**24 - 1, 2**31, 2**32 - 1, 10**9])


@st.composite
def mutated(draw: st.DrawFn, sample: bytes) -> bytes:
    """Flip, cut, repeat, insert and overwrite a few places of a valid sample."""
    raw = bytearray(sample)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        match draw(st.integers(0, 5)):
            case 0 if raw:
                raw[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del raw[at:]
            case 2:
                raw[at:at] = draw(st.binary(max_size=60))
            case 3:
                raw[at : at + 4] = struct.pack("<I", draw(WORDS))
            case 4:
                end = draw(st.integers(at, len(raw)))
                raw[at:at] = raw[at:end]
            case _:
                del raw[at : at + draw(st.integers(1, 60))]
    return bytes(raw)


@st.composite
def chunked(draw: st.DrawFn) -> bytes:
    """Write chunks whose headers and payloads have nothing to do with each other, bombs among them."""
    raw = b""
    for _ in range(draw(st.integers(0, 4))):
        data = draw(st.sampled_from([b"", b"x", bytes(MAX_CHUNK_BYTES), bytes(1 << 20), noise(300, 3)]))
        payload = draw(st.sampled_from([data, lz4.frame.compress(data)])) + draw(st.binary(max_size=8))
        payload = payload[: draw(st.integers(0, len(payload)))] if draw(st.booleans()) else payload
        length = draw(st.sampled_from([0, 1, len(data), len(data) + 1, MAX_CHUNK_BYTES, 2**24 - 1]))
        packed = draw(st.sampled_from([len(payload), 0, 2**24 - 1]))
        head = b"\0" + (packed & 0xFFFFFF).to_bytes(3, "little") + bytes([draw(st.integers(0, 3))])
        raw += head + (length & 0xFFFFFF).to_bytes(3, "little") + payload
    return raw


@st.composite
def sharded(draw: st.DrawFn) -> bytes:
    """Write a shard's records in any order, with any counts and flags."""
    raw = SHARD[:RECORD_BYTES]
    for _ in range(draw(st.integers(0, 8))):
        digest = draw(st.sampled_from([bytes(32), b"\xff" * 32, NAME, claim(TABLE).digest]))
        raw += struct.pack("<32sIIII", digest, *(draw(WORDS) for _ in range(4)))
    return raw + draw(st.binary(max_size=50))


def try_xorb(raw: bytes) -> None:
    try:
        table = verify_xorb(BytesIO(raw), NAME)
    except InvalidXet:
        return
    assert table.xorb_hash() == NAME
    assert table.digests == TABLE.digests


def try_shard(raw: bytes) -> None:
    try:
        claims = list(read_files(BytesIO(raw), len(raw)))
    except InvalidXet:
        return
    assert sum(len(each.terms) for each in claims) * RECORD_BYTES <= len(raw)


def try_table(raw: bytes) -> None:
    try:
        table = parse_table(raw)
    except InvalidXet:
        return
    assert table.to_bytes() == raw


TARGETS: dict[str, tuple[st.SearchStrategy[bytes], Callable[[bytes], None]]] = {
    "mutated xorbs": (mutated(XORB), try_xorb),
    "mutated xorbs with a footer": (mutated(XORB + footer(TABLE)), try_xorb),
    "chunks of anything": (chunked(), try_xorb),
    "mutated shards": (mutated(SHARD), try_shard),
    "records of anything": (sharded(), try_shard),
    "bytes as tables": (st.binary(max_size=400) | mutated(TABLE.to_bytes()), try_table),
}


@pytest.mark.parametrize("target", TARGETS)
def test_parsing_ends_in_a_value_or_in_the_declared_error(target: str) -> None:
    strategy, attempt = TARGETS[target]
    count = 0

    @settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def volley(raw: bytes) -> None:
        nonlocal count
        attempt(raw)
        count += 1

    ends_at = time.monotonic() + BUDGET_S / len(TARGETS)
    volley()
    while time.monotonic() < ends_at:
        volley()
    print(f"{target}: {count} inputs")


def test_the_samples_themselves_are_accepted() -> None:
    assert verify_xorb(BytesIO(XORB + footer(TABLE)), NAME).digests == TABLE.digests
    assert len(list(read_files(BytesIO(SHARD), len(SHARD)))) == 3
    assert parse_table(TABLE.to_bytes()) == TABLE
