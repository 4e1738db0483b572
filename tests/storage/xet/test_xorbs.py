"""Xorbs read back whole, or are refused in one way."""

import tracemalloc
from io import BytesIO

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.xet.chunks import MAX_CHUNK_BYTES, Scheme, group, pack, ungroup
from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest, chunk_hash, merkle_root
from storage.xet.tables import parse_table
from storage.xet.xorbs import (
    MAX_UNPACKED_BYTES,
    MAX_XORB_BYTES,
    MAX_XORB_CHUNKS,
    read_chunks,
    read_verified,
    verify_xorb,
)
from tests.storage.xet.builders import footer, name_of, noise, parse, xorb, xorb_of_schemes

pieces_of_data = st.lists(
    st.one_of(st.binary(min_size=1, max_size=300), st.integers(1, 2000).map(lambda n: b"abcd" * n)),
    min_size=1,
    max_size=20,
)
unhurried = settings(deadline=None, max_examples=60)


def header(packed: int, scheme: int, length: int, version: int = 0) -> bytes:
    return bytes((version,)) + packed.to_bytes(3, "little") + bytes((scheme,)) + length.to_bytes(3, "little")


@given(pieces_of_data)
@unhurried
def test_a_xorb_reads_back(pieces: list[bytes]) -> None:
    raw, table, name = xorb(pieces)
    assert parse(raw, name) == table
    assert [chunk.data for chunk in read_chunks(BytesIO(raw))] == pieces
    assert table.stored_bytes == len(raw)


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=200), st.sampled_from(Scheme)), min_size=1, max_size=8))
@unhurried
def test_every_scheme_reads_back(pieces: list[tuple[bytes, Scheme]]) -> None:
    data = [piece for piece, _ in pieces]
    assert parse(xorb_of_schemes(pieces), name_of(data)).size_bytes == sum(map(len, data))


@given(st.binary(max_size=50))
def test_grouping_bytes_is_undone(data: bytes) -> None:
    assert ungroup(group(data)) == data


@given(pieces_of_data)
@unhurried
def test_a_footer_is_ignored(pieces: list[bytes]) -> None:
    raw, table, name = xorb(pieces)
    assert parse(raw + footer(table), name) == table


@given(pieces_of_data, st.data())
@unhurried
def test_a_flipped_bit_is_refused_or_changes_nothing(pieces: list[bytes], data: st.DataObject) -> None:
    raw, _, name = xorb(pieces)
    position = data.draw(st.integers(0, len(raw) * 8 - 1))
    spoiled = bytearray(raw)
    spoiled[position // 8] ^= 1 << position % 8
    try:
        parse(bytes(spoiled), name)
    except InvalidXet:
        return
    assert [chunk.data for chunk in read_chunks(BytesIO(spoiled))] == pieces


@given(pieces_of_data, st.data())
@unhurried
def test_a_truncated_xorb_is_refused(pieces: list[bytes], data: st.DataObject) -> None:
    raw, _, name = xorb(pieces)
    with pytest.raises(InvalidXet):
        parse(raw[: data.draw(st.integers(0, len(raw) - 1))], name)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidXet):
        parse(raw, Digest(bytes(32)))


def test_another_name_is_refused() -> None:
    raw, _, _ = xorb([b"one", b"two"])
    with pytest.raises(InvalidXet, match="hash to its name"):
        parse(raw, name_of([b"two", b"one"]))


@pytest.mark.parametrize("scheme", [1, 2])
def test_a_bomb_is_refused_without_being_unrolled(scheme: int) -> None:
    payload = lz4.frame.compress(bytes(50_000_000))
    assert len(payload) <= 262_144
    raw = header(len(payload), scheme, MAX_CHUNK_BYTES) + payload
    tracemalloc.start()
    try:
        with pytest.raises(InvalidXet):
            parse(raw, Digest(bytes(32)))
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < 4_000_000


@pytest.mark.parametrize(
    ("head", "payload"),
    [
        (header(3, 0, 3, version=1), b"abc"),
        (header(3, 3, 3), b"abc"),
        (header(0, 0, 0), b""),
        (header(0, 1, 3), b""),
        (header(4, 0, 3), b"abcd"),
        (header(3, 0, 4), b"abc"),
        (header(3, 1, 3), b"abc"),
        (header(0xFFFFFF, 0, 0xFFFFFF), b"abc"),
        (header(MAX_CHUNK_BYTES + 1, 0, MAX_CHUNK_BYTES + 1), bytes(MAX_CHUNK_BYTES + 1)),
        (header(len(lz4.frame.compress(b"abcdef")), 1, 3), lz4.frame.compress(b"abcdef")),
        (header(len(lz4.frame.compress(b"ab")), 1, 3), lz4.frame.compress(b"ab")),
        (header(len(lz4.frame.compress(b"abc") * 2), 1, 3), lz4.frame.compress(b"abc") * 2),
    ],
)
def test_a_lying_chunk_header_is_refused(head: bytes, payload: bytes) -> None:
    with pytest.raises(InvalidXet):
        parse(head + payload, chunk_hash(b"abc"))


def test_more_chunks_than_the_limit_are_refused() -> None:
    pieces = [b"x"] * (MAX_XORB_CHUNKS + 1)
    raw = (header(1, 0, 1) + b"x") * len(pieces)
    name = merkle_root([(chunk_hash(piece), 1) for piece in pieces])
    with pytest.raises(InvalidXet, match="at most"):
        verify_xorb(BytesIO(raw), name)
    assert len(parse(raw[: 9 * MAX_XORB_CHUNKS], merkle_root([(chunk_hash(b"x"), 1)] * MAX_XORB_CHUNKS))) == 8192


def test_a_small_xorb_that_unpacks_to_much_is_refused() -> None:
    chunk = pack(bytes(MAX_CHUNK_BYTES))
    with pytest.raises(InvalidXet, match="unpacked"):
        parse(chunk * (MAX_UNPACKED_BYTES // MAX_CHUNK_BYTES + 1), chunk_hash(b"abc"))


@given(pieces_of_data)
@unhurried
def test_a_table_reads_back_from_its_stored_form(pieces: list[bytes]) -> None:
    _, table, name = xorb(pieces)
    assert parse_table(table.to_bytes()) == table
    assert parse_table(table.to_bytes()).xorb_hash() == name


def test_a_damaged_chunk_is_never_yielded() -> None:
    raw, table, _ = xorb([noise(100, 1), noise(100, 2), noise(100, 3)])
    spoiled = bytearray(raw)
    spoiled[table.stored_ends[1] + 20] ^= 1
    reader = read_verified(BytesIO(spoiled), table, 0, 3)
    assert next(reader).data == noise(100, 1)
    with pytest.raises(InvalidXet):
        next(reader)


def test_a_xorb_that_is_full_to_the_last_byte_is_taken_with_its_headers_and_footer() -> None:
    """Clients count data alone towards 64 MiB: one upload in a few would be refused otherwise."""
    piece = noise(MAX_CHUNK_BYTES)
    raw, table, name = xorb([piece] * (64 * 1024 * 1024 // MAX_CHUNK_BYTES))
    assert len(raw + footer(table)) <= MAX_XORB_BYTES
    assert len(raw) > 64 * 1024 * 1024
    assert verify_xorb(BytesIO(raw + footer(table)), name).size_bytes == 64 * 1024 * 1024
