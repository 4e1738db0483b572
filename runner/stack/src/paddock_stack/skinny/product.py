"""Multiply a few tokens by int4 or bf16 weights, and the fp32 reference of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from paddock_stack.kernels.int4 import Int4Rows, dequantized
from paddock_stack.skinny import compiled, layout
from paddock_stack.skinny.plan import MOST_COUNTERS, MOST_PARTS, TOKENS, Plan, fits, plan


@dataclass(frozen=True)
class Laid:
    """Weights ready for the kernel: `words` and `scale_pairs` as in layout.py, and the shape they came from.

    `group` is the number of columns that a scale covers, 0 for one scale a row. Of `bits` = 16, the words are the bf16
    weights [rows, columns] themselves, and there are no scales.
    """

    words: torch.Tensor
    scale_pairs: torch.Tensor | None
    rows: int
    columns: int
    group: int
    bits: int = 4

    @property
    def plan(self) -> Plan:
        """Return how the product is cut."""
        return plan(self.rows, self.columns, self.bits)

    def kernel(self) -> Any:
        """Return the kernel; the first call compiles it and takes the scratch: no graph may be under capture then."""
        _scratch_for(self.words.device)
        return compiled.function(self.bits, self.group, self.plan)


def laid(weights: Int4Rows) -> Laid:
    """Lay int4 `weights` out for the kernel; on a GPU also compile it."""
    group = 0 if weights.scales.shape[1] == 1 else weights.group_size
    words, pairs = layout.words(weights.packed), layout.scale_pairs(weights.scales)
    made = Laid(words, pairs, weights.rows, weights.columns, group)
    if words.is_cuda:
        made.kernel()
    return made


def is_plain(weight: torch.Tensor) -> bool:
    """Return whether the kernel reads `weight` as it lies: a bf16 matrix in one piece, of a shape that can be cut."""
    is_matrix = weight.dtype == torch.bfloat16 and weight.dim() == 2 and weight.is_contiguous()
    return is_matrix and fits(*weight.shape)


def plain(weight: torch.Tensor) -> Laid:
    """Return `weight` [rows, columns] as the kernel takes it: as it is. Raises ValueError for what isn't plain."""
    if not is_plain(weight):
        raise ValueError(f"contiguous bf16 weights of whole tiles are read, not {weight.dtype} {tuple(weight.shape)}")
    rows, columns = weight.shape
    return Laid(weight, None, rows, columns, group=0, bits=16)


def reference(x: torch.Tensor, weights: Int4Rows) -> torch.Tensor:
    """Return x [tokens, columns] times the weights [rows, columns] transposed, [tokens, rows], in fp32."""
    return x.float() @ dequantized(weights).T


def multiply(x: torch.Tensor, weights: Laid) -> torch.Tensor:
    """Return x [tokens, columns] (bf16, contiguous, at most eight tokens) times the weights transposed, [tokens, rows].

    Sums are fp32 and rounded once. A token's result does not depend on the others. Needs a GPU.
    """
    tokens, columns = x.shape
    addresses = x.data_ptr() | weights.words.data_ptr()
    if not (0 < tokens <= TOKENS) or x.dtype != torch.bfloat16 or not x.is_contiguous() or addresses % 16:
        raise ValueError(
            f"one to {TOKENS} contiguous bf16 tokens are multiplied at once, these and the weights from addresses that "
            f"16 divides, not {tokens} of {x.dtype}"
        )
    if columns != weights.columns or x.device != weights.words.device or not x.is_cuda:
        raise ValueError(f"{weights.columns} columns on the weights' GPU were expected, not {columns} on {x.device}")
    y = x.new_empty(tokens, weights.rows)
    tensors = (weights.words, weights.scale_pairs, x, y, *_scratch_for(x.device))
    pointers = tuple(0 if tensor is None else tensor.data_ptr() for tensor in tensors)
    compiled.launch(weights.kernel(), weights.plan, pointers, (weights.rows, columns, tokens))
    return y


@cache
def _scratch_for(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the fp32 parts and the counters (all zero between launches) that the launches of a device share.

    One stream's launches follow each other, so one pair serves them all. The type is named since vLLM loads a model
    with bf16 as torch's default.
    """
    parts = torch.empty(MOST_PARTS, dtype=torch.float32, device=device)
    return parts, torch.zeros(MOST_COUNTERS, dtype=torch.int32, device=device)
