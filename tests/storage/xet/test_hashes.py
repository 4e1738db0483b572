"""Hashes agree with the client's and hold their form."""

import random
from pathlib import Path

import hf_xet
import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from storage.xet.errors import InvalidXet
from storage.xet.hashes import (
    ZERO,
    Digest,
    Stretch,
    chunk_hash,
    file_hash,
    from_text,
    merkle_root,
    merkle_root_of,
    to_text,
)
from tests.storage.xet.builders import noise

NODE_KEY = bytes.fromhex("017ec5c7a5472996fd946666b48a02e65ddd536f37c76dd2f86352e64a53713f")


def test_the_text_form_prints_four_little_endian_words() -> None:
    assert to_text(bytes(range(32))) == "07060504030201000f0e0d0c0b0a090817161514131211101f1e1d1c1b1a1918"


@given(st.binary(min_size=32, max_size=32))
def test_the_text_form_reads_back(raw: bytes) -> None:
    assert from_text(to_text(raw)) == raw


@given(st.text(max_size=80).filter(lambda text: len(text) != 64))
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidXet):
        from_text(text)


@pytest.mark.parametrize("text", ["g" * 64, "A" * 64, "0" * 63 + "\n", "٣" * 64, "-" + "0" * 63])
def test_sixty_four_wrong_characters_are_refused(text: str) -> None:
    with pytest.raises(InvalidXet):
        from_text(text)


@pytest.mark.parametrize("length", [1, 5, 4096, 8000])
def test_a_file_of_one_chunk_hashes_as_the_client_says(tmp_path: Path, length: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(noise(length))
    (theirs,) = hf_xet.hash_files([str(path)])
    assert to_text(file_hash([(chunk_hash(noise(length)), length)])) == theirs.hash


def test_no_chunks_are_the_empty_file() -> None:
    assert file_hash([]) == ZERO
    assert to_text(ZERO) == "0" * 64


def plain_root(level: list[tuple[bytes, int]]) -> bytes:
    """Fold nodes as the format's description says, one group after the other."""
    while len(level) > 1:
        above, group = [], list[tuple[bytes, int]]()
        for number, node in enumerate(level, start=1):
            group.append(node)
            ends = len(group) == 9 or (len(group) > 2 and int.from_bytes(node[0][24:], "little") % 4 == 0)
            if ends or number == len(level):
                lines = "".join(f"{to_text(digest)} : {length}\n" for digest, length in group)
                name = blake3(lines.encode(), key=NODE_KEY).digest()
                above.append((name, sum(length for _, length in group)))
                group = []
        level = above
    return level[0][0]


@pytest.mark.parametrize("count", [*range(1, 40), 4095, 4096, 4097, 4105, 8192, 9000])
@pytest.mark.parametrize("last_words", [range(256), range(1, 256, 4), range(0, 256, 4)])
def test_many_nodes_fold_as_one_by_one(count: int, last_words: range) -> None:
    """Whether groups end by chance, never before the ninth node, or always at the third."""
    source = random.Random(count)
    draw = [source.randbytes(24) + bytes([source.choice(last_words)]) + source.randbytes(7) for _ in range(count)]
    nodes = [(Digest(digest), source.randrange(2**17)) for digest in draw]
    assert merkle_root(nodes) == plain_root(list(nodes))
    pieces = [nodes[start : start + 7] for start in range(0, count, 7)]
    stretches = [Stretch(b"".join(digest for digest, _ in some), [length for _, length in some]) for some in pieces]
    assert merkle_root_of(stretches) == merkle_root(nodes)


def test_one_node_is_its_own_root() -> None:
    assert merkle_root([(chunk_hash(b"a"), 1)]) == chunk_hash(b"a")


@given(st.lists(st.binary(min_size=1, max_size=4), min_size=2, max_size=60))
def test_every_chunk_and_its_place_count(pieces: list[bytes]) -> None:
    nodes = [(chunk_hash(piece), len(piece)) for piece in pieces]
    root = merkle_root(nodes)
    assert merkle_root(nodes[:-1]) != root
    assert merkle_root([*nodes[:-1], (Digest(bytes(32)), nodes[-1][1])]) != root
    assert merkle_root([*nodes[:-1], (nodes[-1][0], nodes[-1][1] + 1)]) != root
    swapped = [nodes[-1], *nodes[1:-1], nodes[0]]
    assert (merkle_root(swapped) == root) == (swapped == nodes)
