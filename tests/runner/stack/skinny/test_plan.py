"""Every cut of a product covers each row and column once and stays inside what is allocated and what an int holds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock_stack.skinny import source
from paddock_stack.skinny.plan import GROUP_SIZES, MOST_COUNTERS, MOST_PARTS, TILE_ROWS, TOKENS, UNIT, fits, plan
from tests.runner.stack.skinny.slices import slices

INT = 2**31
MOST_ROWS, MOST_COLUMNS = 262_144, 32_768


def gemma(hidden: int, wide: int, heads: int, kv: int, per_layer: int, layers: int = 42) -> list[tuple[int, int]]:
    """Return the (rows, columns) of every product of a Gemma 4 with these widths."""
    shapes = [(2 * wide, hidden), (hidden, wide), (per_layer, hidden), (hidden, per_layer)]
    for width in (256, 512):
        shapes += [((heads + 2 * kv) * width, hidden), (heads * width, hidden), (hidden, heads * width)]
    return [*shapes, (layers * per_layer, hidden), (262_144, hidden), (12_288, hidden)]


E4B = gemma(2560, 10240, 8, 2, 256)
WIDE = gemma(6784, 27136, 20, 5, 640)
EDGES = [(262_144, 10_240), (16, 64), (6400, 1536), (6384, 32_768), (16_400, 2560), (16, 32_768)]


@pytest.mark.parametrize("bits", [4, 16])
@pytest.mark.parametrize(("rows", "columns"), [*E4B, *WIDE, *EDGES])
def test_cut_of_a_known_shape(rows: int, columns: int, bits: int) -> None:
    assert all(fits(rows, columns, group) for group in (*GROUP_SIZES, -1) if group == -1 or columns % group == 0)
    holds(rows, columns, bits)


@given(st.integers(1, MOST_ROWS // TILE_ROWS), st.integers(1, MOST_COLUMNS // UNIT), st.sampled_from([4, 16]))
def test_cut_of_any_shape(tiles: int, units: int, bits: int) -> None:
    holds(tiles * TILE_ROWS, units * UNIT, bits)


def holds(rows: int, columns: int, bits: int) -> None:
    chosen = plan(rows, columns, bits)
    tiles, units = rows // TILE_ROWS, columns // UNIT
    grid = tiles // chosen.tiles
    assert grid * chosen.tiles == tiles
    assert 0 < grid < INT
    assert 0 < chosen.split <= 65_535
    assert chosen.warps * 32 <= 1024
    if chosen.split > 1:
        assert grid <= MOST_COUNTERS
        assert grid * chosen.split * chosen.tiles * TILE_ROWS * TOKENS <= MOST_PARTS
    covered = [unit for first, last in slices(chosen, columns) for unit in range(first, last)]
    assert covered == list(range(units))
    assert (
        units * chosen.warps * chosen.split < INT
    )  # units * (slice + 1), the largest product that skinny.cu takes in int
    assert units * 64 < INT  # of bf16 weights: from row g to row g + 8
    assert chosen.tiles * units * 32 < INT  # r * units * 32, and r * GROUPS(units * UNIT) * 8 below it


def test_products_that_grow_with_the_rows_are_taken_in_64_bits() -> None:
    """tile * units * 32 reaches 2^33 words for a head of 262,144 rows, and token * rows needs no more than 2^21."""
    body = source.text().decode()
    assert "const long tile = (long)blockIdx.x * TILES;" in body
    assert "const long row = (tile + (i >> 7)) * 16" in body
    for factor in re.findall(r"(\S+) \* (?:rows|columns) ", body):
        assert factor.endswith(("(long)token", "(long)g")), factor
    assert body.count("((long)blockIdx.x * gridDim.y + ") == body.count("parts + (") == 2


@pytest.mark.parametrize(
    ("rows", "columns", "group_size"),
    [(24, 64, 32), (16, 96, 32), (16, 64, 16), (16, 64, 0), (16, 128, 256), (16, 64, 128), (16, 320, 128)],
)
def test_shapes_that_the_kernel_cannot_read_are_refused(rows: int, columns: int, group_size: int) -> None:
    assert not fits(rows, columns, group_size)
