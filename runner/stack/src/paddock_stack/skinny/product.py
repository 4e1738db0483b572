"""Multiply a few tokens by int4 weights, and the fp32 reference of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch

from paddock_stack.kernels.int4 import Int4Rows, dequantized
from paddock_stack.skinny import compiled, layout
from paddock_stack.skinny.plan import MOST_COUNTERS, MOST_PARTS, TILE_ROWS, TOKENS, plan


@dataclass(frozen=True)
class Laid:
    """Weights ready for the kernel: `words` and `scale_pairs` as in layout.py, and the shape they came from.

    `group` is the number of columns that a scale covers, 0 for one scale a row.
    """

    words: torch.Tensor
    scale_pairs: torch.Tensor
    rows: int
    columns: int
    group: int


def laid(weights: Int4Rows) -> Laid:
    """Lay `weights` out for the kernel; on a GPU also compile it, since a graph under capture can't wait for that."""
    group = 0 if weights.scales.shape[1] == 1 else weights.group_size
    if weights.packed.is_cuda:
        compiled.function(group, plan(weights.rows, weights.columns))
        _scratch_for(weights.packed.device)
    return Laid(layout.words(weights.packed), layout.scale_pairs(weights.scales), weights.rows, weights.columns, group)


def reference(x: torch.Tensor, weights: Int4Rows) -> torch.Tensor:
    """Return x [tokens, columns] times the weights [rows, columns] transposed, [tokens, rows], in fp32."""
    return x.float() @ dequantized(weights).T


def multiply(x: torch.Tensor, weights: Laid) -> torch.Tensor:
    """Return x [tokens, columns] (bf16, contiguous, at most eight tokens) times the weights transposed, [tokens, rows].

    Sums are fp32 and rounded once. A token's result does not depend on the others. Needs a GPU.
    """
    tokens, columns = x.shape
    if not (0 < tokens <= TOKENS) or x.dtype != torch.bfloat16 or not x.is_contiguous() or x.data_ptr() % 16:
        raise ValueError(
            f"one to {TOKENS} contiguous bf16 tokens, from an address that 16 divides, are multiplied at once, "
            f"not {tokens} of {x.dtype}"
        )
    if columns != weights.columns or x.device != weights.words.device or not x.is_cuda:
        raise ValueError(f"{weights.columns} columns on the weights' GPU were expected, not {columns} on {x.device}")
    y = x.new_empty(tokens, weights.rows)
    chosen = plan(weights.rows, weights.columns)
    parts, counters = _scratch_for(x.device)
    tensors = (weights.words, weights.scale_pairs, x, y, parts, counters)
    compiled.launch(
        chosen,
        weights.group,
        weights.rows // TILE_ROWS // chosen.tiles,
        tuple(tensor.data_ptr() for tensor in tensors),
        (weights.rows, weights.columns, tokens),
    )
    return y


@cache
def _scratch_for(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the fp32 parts and the counters (all zero between launches) that the launches of a device share.

    One stream's launches follow each other, so one pair serves them all. The type is named since vLLM loads a model
    with bf16 as torch's default.
    """
    parts = torch.empty(MOST_PARTS, dtype=torch.float32, device=device)
    return parts, torch.zeros(MOST_COUNTERS, dtype=torch.int32, device=device)
