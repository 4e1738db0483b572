"""Compute what skinny.cu computes, lane by lane, from the same words, scale pairs and addresses, exactly."""

from __future__ import annotations

import torch

from paddock_stack.skinny.plan import TILE_ROWS, TOKENS, UNIT
from paddock_stack.skinny.product import Laid
from tests.runner.stack.skinny.slices import slices

LANES = [(4 * g + t, g, t) for g in range(8) for t in range(4)]


def product(x: torch.Tensor, weights: Laid) -> torch.Tensor:
    """Return x [tokens, columns] times the weights transposed, [tokens, rows], in fp64."""
    tiles = weights.rows // TILE_ROWS
    fragments = a_fragments(weights.words) if weights.bits == 4 else bf16_fragments(weights.words)
    unit_products = fragments @ b_fragments(x, weights.columns)  # [tiles, units, word, 16, 8]
    sums = torch.zeros(tiles, 16, 8, dtype=torch.float64)
    for first, last in slices(weights.plan, weights.columns):
        at = 0 if not weights.group else first * UNIT // weights.group * 8
        for unit in range(first, last):
            sums += scaled(unit_products[:, unit], weights, at)
            at += stride(weights.group, unit)
    return stored(sums, x.shape[0])


def bf16_fragments(weight: torch.Tensor) -> torch.Tensor:
    """Return the A operands [tiles, units, word, 16, 16] of bf16 weights: two for each half of a unit."""
    rows, columns = weight.shape
    flat = weight.double().flatten()
    a = torch.zeros(rows // TILE_ROWS, columns // UNIT, 4, 16, 16, dtype=torch.float64)
    tile = torch.arange(rows // TILE_ROWS)[:, None]
    unit = torch.arange(columns // UNIT)[None, :]
    for lane, g, t in LANES:
        low = 8 * (((tile * 16 + (lane >> 2)) * (columns // UNIT) + unit) * 8 + (lane & 3))  # where `cursor` points
        for word in range(4):
            read = low + 32 * (word >> 1) + 4 * (word & 1)
            for column, offset in ((2 * t, 0), (2 * t + 1, 1), (2 * t + 8, 2), (2 * t + 9, 3)):
                a[:, :, word, g, column] = flat[read + offset]
                a[:, :, word, g + 8, column] = flat[read + columns * 8 + offset]
    return a


def a_fragments(words: torch.Tensor) -> torch.Tensor:
    """Return the A operands [tiles, units, word, 16, 16]: register r of a lane is `pair(word >> 4 * r)`."""
    a = torch.zeros(*words.shape[:2], 4, 16, 16, dtype=torch.float64)
    unsigned = words.to(torch.int64) & 0xFFFFFFFF
    for lane, g, t in LANES:
        for register in range(4):
            shifted = unsigned[:, :, lane, :] >> (4 * register)
            row, column = g + 8 * (register & 1), 2 * t + 8 * (register >> 1)
            a[..., row, column] = ((shifted & 15) - 8).double()
            a[..., row, column + 1] = ((shifted >> 16 & 15) - 8).double()
    return a


def b_fragments(x: torch.Tensor, columns: int) -> torch.Tensor:
    """Return the B operands [units, word, 16, 8]: lane 4 g + t reads eight columns of token g at 8 t and 32 + 8 t."""
    tokens = torch.zeros(TOKENS, columns, dtype=torch.float64)
    tokens[: x.shape[0]] = x.double()
    b = torch.zeros(columns // UNIT, 4, 16, 8, dtype=torch.float64)
    for _, g, t in LANES:
        for word in range(4):
            read = 32 * (word >> 1) + 8 * t + 4 * (word & 1)
            for k, offset in ((2 * t, 0), (2 * t + 1, 1), (2 * t + 8, 2), (2 * t + 9, 3)):
                b[:, word, k, g] = tokens[g, read + offset :: UNIT]
    return b


def scaled(parts: torch.Tensor, weights: Laid, at: int) -> torch.Tensor:
    """Return a unit's products [tiles, word, 16, 8], scaled by the pairs at address `at` of each tile and added up."""
    if weights.scale_pairs is None:
        return parts.sum(dim=1)
    pairs = weights.scale_pairs.flatten(1)
    first, second = _scales(pairs[:, at : at + 8]), _scales(pairs[:, at + 8 : at + 16])
    if weights.group != 32:
        return parts.sum(dim=1) * first
    return (parts[:, 0] + parts[:, 1]) * first + (parts[:, 2] + parts[:, 3]) * second


def _scales(pairs: torch.Tensor) -> torch.Tensor:
    low = (pairs << 16).view(torch.float32)
    high = (pairs & -65536).view(torch.float32)
    return torch.cat([low, high], dim=1).double()[..., None]


def stride(group: int, unit: int) -> int:
    """Return by how much the scales' cursor moves after `unit`."""
    if not group:
        return 0
    return 8 * UNIT // group if group <= UNIT else 8 * ((unit + 1) % (group // UNIT) == 0)


def stored(sums: torch.Tensor, tokens: int) -> torch.Tensor:
    """Return y as the last threads store it, out of the accumulators [tiles, 16, 8] of mma.m16n8k16."""
    y = torch.full((tokens, sums.shape[0] * 16), float("nan"), dtype=torch.float64)
    for lane, g, t in LANES:
        for element in range(4):
            held = sums[:, g + 8 * (element >> 1), 2 * t + (element & 1)]
            token, row = (lane & 3) * 2 + (element & 1), (lane >> 2) + (element >> 1) * 8
            if token < tokens:
                y[token, row::16] = held
    return y
