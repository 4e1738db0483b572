"""The Triton kernels of the sparse argmax: best centroids, best of every block of their tokens, best block."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from paddock_stack.kernels.sparse_argmax import BLOCK


@triton.jit
def best_columns(
    scores,  # [num_tokens, num_columns]
    out,  # [num_tokens, k] int64
    num_columns: tl.constexpr,
    padded: tl.constexpr,
    k: tl.constexpr,
):
    """Write the `k` best columns of one token, best first, the lower of equal ones first.

    Score and column are compared as one number: the score's bits, made to order like the score, above the column. The
    largest is taken out k times; sorting all of them compiles to 600 KB of code.
    """
    token = tl.program_id(0)
    column = tl.arange(0, padded)
    score = tl.load(scores + token * num_columns + column, mask=column < num_columns, other=float("-inf"))
    bits = (score.to(tl.float32) + 0.0).to(tl.int32, bitcast=True)  # + 0.0: there is one zero
    ordered = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits).to(tl.int64)
    left = (ordered << 32) | (padded - 1 - column).to(tl.int64)
    for place in range(k):
        best = tl.max(left, axis=0)
        tl.store(out + token * k + place, padded - 1 - (best & 0xFFFFFFFF))
        left = tl.where(left == best, -0x8000000000000000, left)


@triton.jit
def best_of_block(
    hidden,  # [num_tokens, hidden_size]
    chosen,  # [num_tokens, k] int64
    ordering,  # [num_centroids, per_centroid] int64
    weight,  # [vocab_size, hidden_size]
    best_scores,  # [num_tokens, num_blocks] float32
    best_tokens,  # [num_tokens, num_blocks] int64
    k: tl.constexpr,
    per_centroid: tl.constexpr,
    hidden_size: tl.constexpr,
    hidden_padded: tl.constexpr,
    block: tl.constexpr,
):
    """Write the best score of `block` candidates of one token, and which token of the vocabulary it is."""
    token = tl.program_id(0)
    slot = tl.program_id(1) * block + tl.arange(0, block)
    is_candidate = slot < k * per_centroid
    centroid = tl.load(chosen + token * k + slot // per_centroid, mask=is_candidate, other=0)
    candidate = tl.load(ordering + centroid * per_centroid + slot % per_centroid, mask=is_candidate, other=0)
    column = tl.arange(0, hidden_padded)
    is_column = column < hidden_size
    state = tl.load(hidden + token * hidden_size + column, mask=is_column, other=0.0).to(tl.float32)
    rows = tl.load(
        weight + candidate[:, None] * hidden_size + column[None, :],
        mask=is_candidate[:, None] & is_column[None, :],
        other=0.0,
    )
    scores = tl.sum(rows.to(tl.float32) * state[None, :], axis=1).to(weight.dtype.element_ty).to(tl.float32)
    scores = tl.where(is_candidate, scores, float("-inf"))
    winner = tl.argmax(scores, axis=0, tie_break_left=True)
    place = token * tl.num_programs(1) + tl.program_id(1)
    tl.store(best_scores + place, tl.max(scores, axis=0))
    tl.store(best_tokens + place, tl.sum(tl.where(tl.arange(0, block) == winner, candidate, 0), axis=0))


@triton.jit
def best_of_blocks(
    best_scores,  # [num_tokens, num_blocks] float32
    best_tokens,  # [num_tokens, num_blocks] int64
    out,  # [num_tokens] int64
    num_blocks: tl.constexpr,
    padded: tl.constexpr,
):
    """Write the token of the best block; of equal blocks, the leftmost."""
    token = tl.program_id(0)
    block = tl.arange(0, padded)
    scores = tl.load(best_scores + token * num_blocks + block, mask=block < num_blocks, other=float("-inf"))
    winner = tl.argmax(scores, axis=0, tie_break_left=True)
    tl.store(out + token, tl.load(best_tokens + token * num_blocks + winner))


def launch_choice(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Run the kernel that chooses columns; shapes as in `best_centroids.twin`."""
    num_tokens, num_columns = scores.shape
    out = torch.empty((num_tokens, k), dtype=torch.int64, device=scores.device)
    padded = triton.next_power_of_2(num_columns)
    best_columns[(num_tokens,)](scores.contiguous(), out, num_columns=num_columns, padded=padded, k=k, num_warps=8)
    return out


def launch(hidden: torch.Tensor, chosen: torch.Tensor, ordering: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Run both kernels; shapes as in `sparse_argmax.reference`, all tensors contiguous on one device."""
    num_tokens, hidden_size = hidden.shape
    k, per_centroid = chosen.shape[1], ordering.shape[1]
    num_blocks = triton.cdiv(k * per_centroid, BLOCK)
    scores = torch.empty((num_tokens, num_blocks), dtype=torch.float32, device=hidden.device)
    tokens = torch.empty((num_tokens, num_blocks), dtype=torch.int64, device=hidden.device)
    out = torch.empty(num_tokens, dtype=torch.int64, device=hidden.device)
    best_of_block[(num_tokens, num_blocks)](
        hidden.contiguous(),
        chosen.contiguous(),
        ordering.contiguous(),
        weight.contiguous(),
        scores,
        tokens,
        k=k,
        per_centroid=per_centroid,
        hidden_size=hidden_size,
        hidden_padded=triton.next_power_of_2(hidden_size),
        block=BLOCK,
    )
    best_of_blocks[(num_tokens,)](scores, tokens, out, num_blocks=num_blocks, padded=triton.next_power_of_2(num_blocks))
    return out
