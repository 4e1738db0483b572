"""Rows and columns on demand against numpy's own indexing."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock_stack.bake.tensors import Columns, Rows, Stored, Tensor, ranges_of, slice_ranges
from paddock_stack.bake.weights_file import InputFile
from paddock_stack.refusals import Refused

VALUES = np.arange(60 * 24, dtype="<u2").reshape(60, 24)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    path = tmp_path_factory.mktemp("file") / "values"
    path.write_bytes(b"head" + VALUES.tobytes())
    return Stored(InputFile(path), 4, "BF16", VALUES.shape)


def whole(tensor: Tensor) -> np.ndarray:
    return np.frombuffer(b"".join(bytes(block) for block in tensor.blocks()), "<u2").reshape(tensor.shape)


indices = st.lists(st.integers(0, 11), min_size=1, unique=True)


@given(indices, indices, st.integers(0, 60), st.integers(0, 60))
def test_rows_and_columns_are_those_that_were_asked_for(
    stored: Stored, groups: list[int], columns: list[int], one: int, other: int
) -> None:
    rows = [group * 5 + place for group in groups for place in range(5)]
    cut = Columns(Rows(stored, ranges_of(groups, 5)), ranges_of(columns, 2))
    expected = VALUES[rows][:, [column * 2 + place for column in columns for place in range(2)]]
    assert (whole(cut) == expected).all()
    start, stop = sorted((one, other))
    if start < min(stop, len(rows)):
        assert (cut.rows(start, min(stop, len(rows))) == expected[start:stop]).all()


@given(st.lists(st.integers(0, 40), min_size=1), st.integers(1, 4))
def test_ranges_cover_their_indices_in_order(found: list[int], width: int) -> None:
    ranges = ranges_of(found, width)
    covered = [position for first, last in ranges for position in range(first, last)]
    assert covered == [index * width + place for index in found for place in range(width)]
    for start in range(len(covered)):
        parts = slice_ranges(ranges, start, start + 3)
        assert [at for first, last in parts for at in range(first, last)] == covered[start : start + 3]


def test_blocks_of_a_large_tensor_come_to_the_same(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 255, (5_000_000, 2), dtype=np.uint8)
    (tmp_path / "values").write_bytes(values.tobytes())
    stored = Stored(InputFile(tmp_path / "values"), 0, "U8", values.shape)
    assert b"".join(bytes(block) for block in stored.blocks()) == values.tobytes()
    assert b"".join(bytes(block) for block in Rows(stored, ((1, 4_999_999),)).blocks()) == values[1:-1].tobytes()


def test_what_is_not_there_is_refused(stored: Stored) -> None:
    for ranges in ((), ((0, 61),), ((5, 5),), ((-1, 2),)):
        with pytest.raises(Refused):
            Rows(stored, ranges)
