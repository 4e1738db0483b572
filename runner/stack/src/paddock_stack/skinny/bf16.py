"""Multiply up to eight tokens by bf16 weights with our kernel, so that a verified token equals one decoded alone.

cuBLAS chooses a kernel by the number of tokens. On an H200 those for one and for eight agree to the bit at every shape
of Gemma 4 (bench/H200.md), but nobody promises it for another GPU or the next release. Longer batches stay with it.
"""

from __future__ import annotations

import torch

from paddock_stack.skinny.plan import TOKENS
from paddock_stack.skinny.product import is_plain, multiply, plain


def suits(weight: torch.Tensor) -> bool:
    """Return whether the kernel takes `weight` and it is on a GPU; torch's compiler asks this of a fake tensor."""
    return weight.is_cuda and is_plain(weight)


@torch.library.custom_op("paddock::bf16_linear", mutates_args=())  # type: ignore[untyped-decorator]  # torch is not seen here
def bf16_linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return x [tokens, in] times `weight` [out, in] transposed, [tokens, out], both bf16 on a GPU.

    One operator, so that a compiled graph holds whichever number of tokens it is given. The first call, vLLM's longest
    batch, compiles the kernel: graphs are captured later.
    """
    weights = plain(weight)
    weights.kernel()
    if 0 < x.shape[0] <= TOKENS:
        return multiply(x.contiguous(), weights)
    return torch.nn.functional.linear(x, weight)


@bf16_linear.register_fake  # type: ignore[untyped-decorator]  # torch is not seen here
def _shape(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[0])
