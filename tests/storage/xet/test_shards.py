"""Shards read back, lying ones are refused, and a file is only what its terms add up to."""

import struct
from contextlib import suppress
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.xet.errors import InvalidXet
from storage.xet.files import verify_file
from storage.xet.hashes import ZERO, Digest
from storage.xet.shards import RECORD_BYTES, FileClaim, Term, read_files, serialise
from storage.xet.terms import pack_terms, parse_terms
from tests.storage.xet.builders import claim, noise, xorb

digests = st.binary(min_size=32, max_size=32).filter(lambda raw: raw != b"\xff" * 32).map(Digest)
counts = st.integers(0, 2**32 - 1)
terms = st.lists(st.builds(Term, digests, counts, counts, counts), max_size=5).map(tuple)
claims = st.builds(
    lambda digest, found, proofs: FileClaim(digest, found, tuple(proofs[: len(found)])),
    digests,
    terms,
    st.lists(digests, min_size=5, max_size=5),
)
unhurried = settings(deadline=None, max_examples=80)


def read(raw: bytes) -> list[FileClaim]:
    return list(read_files(BytesIO(raw), len(raw)))


@given(st.lists(claims, max_size=4))
@unhurried
def test_a_shard_reads_back(files: list[FileClaim]) -> None:
    assert read(serialise(files)) == files


@given(terms)
def test_terms_read_back_from_their_stored_form(found: tuple[Term, ...]) -> None:
    assert tuple(parse_terms(pack_terms(found))) == found


@given(st.lists(claims, max_size=3), st.data())
@unhurried
def test_a_flipped_bit_gives_other_claims_or_the_one_error(files: list[FileClaim], data: st.DataObject) -> None:
    raw = bytearray(serialise(files))
    position = data.draw(st.integers(0, len(raw) * 8 - 1))
    raw[position // 8] ^= 1 << position % 8
    with suppress(InvalidXet):  # any other exception is what this test looks for
        read(bytes(raw))


@given(st.lists(claims, max_size=3), st.data())
@unhurried
def test_a_truncated_shard_is_refused(files: list[FileClaim], data: st.DataObject) -> None:
    raw = serialise(files)
    with pytest.raises(InvalidXet):
        read(raw[: data.draw(st.integers(0, len(raw) - 1))])


@given(st.binary(max_size=600))
def test_arbitrary_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(InvalidXet):
        read(raw)


@pytest.mark.parametrize("section", ["file", "xorb"])
def test_a_lying_count_is_refused_before_anything_is_read(section: str) -> None:
    head = serialise([])[:RECORD_BYTES]
    bookend = b"\xff" * 32 + bytes(16)
    lie = struct.pack("<32sIIQ", bytes(32), 1 << 31, 2**32 - 1, 0)
    raw = head + (lie if section == "file" else bookend + lie) + bookend
    with pytest.raises(InvalidXet, match="announces"):
        read(raw)


def test_terms_without_proofs_are_refused() -> None:
    raw = bytearray(serialise([claim(xorb([b"abc"])[1])]))
    raw[RECORD_BYTES + 32 : RECORD_BYTES + 36] = struct.pack("<I", 0)
    with pytest.raises(InvalidXet, match="verification"):
        read(bytes(raw))


def test_a_true_claim_gives_its_size() -> None:
    _, table, name = xorb([noise(1000, 1), noise(500, 2), noise(7, 3)])
    assert verify_file(claim(table), {name: table}) == 1507
    assert verify_file(claim(table, 1, 2), {name: table}) == 500
    assert verify_file(FileClaim(ZERO, (), ()), {}) == 0


def lies() -> list[tuple[str, FileClaim]]:
    _, table, _ = xorb([noise(1000, 1), noise(500, 2), noise(7, 3)])
    true = claim(table)
    (term,) = true.terms
    return [
        ("another name", replace(true, digest=Digest(noise(32)))),
        ("the empty file's name", replace(true, digest=ZERO)),
        ("an unknown xorb", replace(true, terms=(replace(term, xorb=Digest(noise(32))),))),
        ("a longer term", replace(true, terms=(replace(term, length=term.length + 1),))),
        ("an empty term", replace(true, terms=(replace(term, start=1, end=1, length=0),))),
        ("a term that runs backwards", replace(true, terms=(replace(term, start=2, end=1),))),
        ("a term past the end", replace(true, terms=(replace(term, end=4),))),
        ("a term of other chunks", replace(true, terms=(replace(term, end=2, length=1500),))),
        ("a wrong proof", replace(true, proofs=(Digest(noise(32)),))),
        ("the terms twice", replace(true, terms=true.terms * 2, proofs=true.proofs * 2)),
        ("no terms", replace(true, terms=(), proofs=())),
        ("far too many chunks", replace(true, terms=(replace(term, end=2**32 - 1),) * 3, proofs=true.proofs * 3)),
    ]


@pytest.mark.parametrize("lie", [pair[1] for pair in lies()], ids=[pair[0] for pair in lies()])
def test_a_false_claim_is_refused(lie: FileClaim) -> None:
    _, table, name = xorb([noise(1000, 1), noise(500, 2), noise(7, 3)])
    with pytest.raises(InvalidXet):
        verify_file(lie, {name: table})
