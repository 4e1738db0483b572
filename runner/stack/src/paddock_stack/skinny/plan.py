"""Choose how a product is cut into blocks, warps and tiles, from its shape alone."""

from __future__ import annotations

from dataclasses import dataclass

TOKENS = 8  # columns of the tensor core's product: the most tokens of one launch
TILE_ROWS = 16
UNIT = 64  # columns that a warp reads at a time; skinny.cu says the same
GROUP_SIZES = (32, 64, 128)

_ENOUGH_BLOCKS = 400  # three for each of an H200's 132 processors, five for each of an A10G's 80
_MANY_TILES = 1024
_FEWEST_UNITS = 3  # that a warp should read, or starting it costs more than it saves

MOST_COUNTERS = _ENOUGH_BLOCKS  # tiles whose columns are split
MOST_PARTS = 2 * _ENOUGH_BLOCKS * TILE_ROWS * TOKENS  # fp32 sums that the blocks of such tiles leave for the last one


@dataclass(frozen=True)
class Plan:
    """How many `warps` make a block, `tiles` of sixteen rows a warp, `depth` reads in flight, and how many blocks
    `split` a row's columns. A sum's order depends on `warps` and `split` only."""

    warps: int
    tiles: int
    depth: int
    split: int


def fits(rows: int, columns: int, group_size: int = -1) -> bool:
    """Return whether the kernel takes weights of `rows` x `columns` in groups of `group_size` columns (-1: one)."""
    grouped = group_size == -1 or (group_size in GROUP_SIZES and columns % group_size == 0)
    return rows % TILE_ROWS == 0 and columns % UNIT == 0 and grouped


def plan(rows: int, columns: int, bits: int = 4) -> Plan:
    """Return the cut for weights of `rows` x `columns`; the choices are measured in bench/H200.md.

    Many rows: short blocks of warps that share each read of the tokens, int4 by two tiles a warp since a unit of theirs
    is only sixteen bytes a lane. Few: more warps a row, and where even these leave processors idle, several blocks a
    row.
    """
    tiles, units = rows // TILE_ROWS, columns // UNIT
    if tiles >= _MANY_TILES and tiles % 2 == 0:
        return Plan(warps=4, tiles=2 if bits == 4 else 1, depth=2, split=1)
    if units < 2 * 8:
        return Plan(warps=4, tiles=1, depth=2, split=1)
    split = max(1, min(-(-_ENOUGH_BLOCKS // tiles), units // (8 * _FEWEST_UNITS)))
    return Plan(warps=8, tiles=1, depth=2, split=split)
