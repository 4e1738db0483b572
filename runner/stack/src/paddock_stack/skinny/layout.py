"""Lay int4 weights out so that a lane of skinny.cu reads sixteen bytes and needs no shuffle.

A tile is sixteen rows, a unit 64 columns. Lane 4 g + t holds, of rows g and g + 8, eight columns from 8 t on of each of
the unit's halves, four words of eight weights. Word 2 b + s of a lane holds columns 32 b + 8 t + 4 s + (0..3): bits
4 r of its low half the first of a pair, of its high half the second, with r = 2 p + h for pair p and row g + 8 h. These
are the registers of mma.m16n8k16, with the columns of a unit in an order that suits the activations' reads as well.
"""

from __future__ import annotations

import torch

from paddock_stack.skinny.plan import TILE_ROWS, UNIT

_ROWS_AT_ONCE = 8192  # unpacked, a head of 262,144 rows would not fit beside the model


def words(packed: torch.Tensor) -> torch.Tensor:
    """Return compressed-tensors' `packed` [rows, columns / 8] (int32) as [rows / 16, columns / 64, 32, 4]."""
    laid = packed.new_empty(packed.shape[0] // TILE_ROWS, packed.shape[1] * 8 // UNIT, 32, 4)
    for first in range(0, packed.shape[0], _ROWS_AT_ONCE):
        some = packed[first : first + _ROWS_AT_ONCE]
        laid[first // TILE_ROWS : (first + some.shape[0]) // TILE_ROWS] = _some_words(some)
    return laid


def _some_words(packed: torch.Tensor) -> torch.Tensor:
    shifts = 4 * torch.arange(8, device=packed.device, dtype=torch.int32)
    nibbles = (packed[..., None] >> shifts) & 15
    units = packed.shape[1] * 8 // UNIT
    parts = nibbles.reshape(-1, 2, 8, units, 2, 4, 2, 2, 2)  # tile, h, g, unit, b, t, s, p, first or second
    word = parts.new_zeros(parts.shape[0], 8, units, 2, 4, 2)
    for h in range(2):
        for p in range(2):
            for second in range(2):
                word |= parts[:, h, :, :, :, :, :, p, second] << (4 * (2 * p + h + 4 * second))
    return word.permute(0, 2, 1, 4, 3, 5).reshape(-1, units, 32, 4)


def scale_pairs(scales: torch.Tensor) -> torch.Tensor:
    """Return `scales` [rows, groups] (bf16) as [rows / 16, groups, 8] int32: row g in the low half, g + 8 above."""
    rows, groups = scales.shape
    bits = scales.contiguous().view(torch.int16).to(torch.int32).reshape(rows // TILE_ROWS, 2, 8, groups)
    return ((bits[:, 0] & 0xFFFF) | (bits[:, 1] << 16)).permute(0, 2, 1).contiguous()
