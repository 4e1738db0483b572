"""Products of a few hidden states with a tile of weight rows, shared by the kernels that read plain or int4 rows.

Tokens are padded to 16, the least that a tensor core takes; the weights are read once for all of them.
"""

from __future__ import annotations

import triton
import triton.language as tl

TOKENS: tl.constexpr = tl.constexpr(16)


@triton.jit
def states_tile(hidden, first, num_tokens, hidden_size: tl.constexpr, tokens: tl.constexpr, width: tl.constexpr):
    """Load columns `first`.. of hidden states [num_tokens, hidden_size] as [width, tokens], zeros past their ends."""
    column = first + tl.arange(0, width)
    token = tl.arange(0, tokens)
    return tl.load(
        hidden + token[None, :] * hidden_size + column[:, None],
        mask=(token[None, :] < num_tokens) & (column[:, None] < hidden_size),
        other=0.0,
    )


@triton.jit
def plain_product(
    hidden,  # [num_tokens, hidden_size]
    weight,  # [num_rows, hidden_size]
    row,  # [rows], the rows of this tile
    num_rows,
    num_tokens,
    first,  # the first column, a multiple of `width`
    last,  # the column after the last
    hidden_size: tl.constexpr,
    rows: tl.constexpr,
    tokens: tl.constexpr,
    width: tl.constexpr,
):
    """Return fp32 products [rows, tokens] over columns `first`..`last`."""
    total = tl.zeros((rows, tokens), dtype=tl.float32)
    for start in range(first, last, width):
        column = start + tl.arange(0, width)
        tile = tl.load(
            weight + row[:, None].to(tl.int64) * hidden_size + column[None, :],
            mask=(row[:, None] < num_rows) & (column[None, :] < hidden_size),
            other=0.0,
        )
        states = states_tile(hidden, start, num_tokens, hidden_size, tokens, width)
        total += tl.dot(tile, states, input_precision="ieee")
    return total


@triton.jit
def int4_product(
    hidden,  # [num_tokens, hidden_size]
    packed,  # [num_rows, hidden_size / 8] int32
    scales,  # [num_rows, hidden_size / group_size]
    row,  # [rows], the rows of this tile
    num_rows,
    num_tokens,
    first,  # the first column, a multiple of `width`
    last,  # the column after the last
    hidden_size: tl.constexpr,
    group_size: tl.constexpr,
    rows: tl.constexpr,
    tokens: tl.constexpr,
    width: tl.constexpr,  # divides group_size
):
    """Return fp32 products [rows, tokens] over columns `first`..`last`.

    The int4 values are exact in every type; scales multiply the fp32 sums of a tile, never the values.
    """
    words: tl.constexpr = hidden_size // 8
    groups: tl.constexpr = hidden_size // group_size
    is_row = row < num_rows
    shifts = 4 * tl.arange(0, 8)
    total = tl.zeros((rows, tokens), dtype=tl.float32)
    for start in range(first, last, width):
        word = start // 8 + tl.arange(0, width // 8)
        read = tl.load(
            packed + row[:, None].to(tl.int64) * words + word[None, :],
            mask=is_row[:, None] & (word[None, :] < words),
            other=0,
        )
        values = tl.reshape(((read[:, :, None] >> shifts[None, None, :]) & 15) - 8, (rows, width))
        states = states_tile(hidden, start, num_tokens, hidden_size, tokens, width)
        scale = tl.load(scales + row.to(tl.int64) * groups + start // group_size, mask=is_row, other=0.0)
        part = tl.dot(values.to(states.dtype), states, input_precision="ieee")
        total += part * scale.to(tl.float32)[:, None]
    return total
