"""The Triton kernels of the sparse argmax: best centroids, best of every block of their tokens, best block."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from paddock_stack.kernels.best_centroids import BELOW_ALL, NETWORK
from paddock_stack.kernels.sparse_argmax import BLOCK


@triton.jit
def best_columns(
    scores,  # [num_tokens, num_columns] bfloat16
    out,  # [num_tokens, k] int64
    num_columns: tl.constexpr,
    padded: tl.constexpr,
    k: tl.constexpr,
    log_slots: tl.constexpr,
    log_network: tl.constexpr,
    below_all: tl.constexpr,
):
    """Write the `k` best columns of one token in torch's order; `best_centroids` says which that is.

    The k-th best score is found in base 3, eleven digits: two counts fit into one number, and so into one reduction.
    Then the chosen columns meet in `out`.
    """
    scores += tl.program_id(0) * num_columns
    out += tl.program_id(0) * k
    column = tl.arange(0, padded)
    is_column = column < num_columns
    key = tl.where(is_column, key_of(tl.load(scores + column, mask=is_column, other=0.0)), below_all)
    kth, step = below_all, 59049
    while step > 0:
        counts = tl.sum((key >= kth + step).to(tl.int32) + ((key >= kth + 2 * step).to(tl.int32) << 16), axis=0)
        kth += step * (((counts & 0xFFFF) >= k).to(tl.int32) + ((counts >> 16) >= k).to(tl.int32))
        step = step // 3
    is_above = (key > kth).to(tl.int32)
    is_kth = (key == kth) & is_column
    seen = tl.cumsum(is_above + (is_kth.to(tl.int32) << 16), axis=0)
    place = tl.where(is_kth, tl.sum(is_above, axis=0) + (seen >> 16), tl.where(is_above > 0, seen & 0xFFFF, k + 1)) - 1
    tl.store(out + place, column.to(tl.int64), mask=place < k)
    tl.debug_barrier()
    slot = tl.arange(0, 1 << log_slots)
    chosen = tl.load(out + slot, mask=slot < k, other=0)
    key = tl.where(slot < k, key_of(tl.load(scores + chosen)), below_all)
    key = tl.where(key == -1, 0, key)  # from here on the two zeros are equal
    tl.debug_barrier()
    if log_slots == log_network:
        tl.store(out + slot, tl.gather(chosen, network(key, slot, log_slots), axis=0), mask=slot < k)
    else:  # torch merges, which leaves equal ones in the order of their slots
        item = (key << 16) | ((1 << log_slots) - 1 - slot)
        tl.store(out + tl.sum((item[:, None] > item[None, :]).to(tl.int32), axis=0), chosen, mask=slot < k)


@triton.jit
def key_of(score):
    """Return whole numbers that order like finite bfloat16 scores, -1 for -0.0 and 0 for 0.0."""
    bits = score.to(tl.int16, bitcast=True).to(tl.int32)
    return bits ^ ((bits >> 31) & 0x7FFF)


@triton.jit
def network(key, slot, log_slots: tl.constexpr):
    """Return whose slot's `key` torch's bitonic network puts where, the greatest first; it moves equal ones, too."""
    item = (key << 16) | slot
    for log_size in tl.static_range(1, log_slots + 1):
        for step in tl.static_range(log_size):
            stride = 1 << (log_size - 1 - step)
            other = tl.gather(item, slot ^ stride, axis=0)
            is_first = (slot & stride) == 0
            first, second = tl.where(is_first, item, other), tl.where(is_first, other, item)
            is_greater = (first >> 16) > (second >> 16)
            item = tl.where(is_greater == ((slot & (1 << log_size)) != 0), other, item)
    return item & 0xFFFF


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


def launch_choice(scores: torch.Tensor, k: int, num_warps: int = 8) -> torch.Tensor:
    """Run the kernel that chooses columns; shapes as in `best_centroids.twin`.

    Fewer warps hold more columns each, which unrolls into several times as much code.
    """
    num_tokens, num_columns = scores.shape
    out = torch.empty((num_tokens, k), dtype=torch.int64, device=scores.device)
    best_columns[(num_tokens,)](
        scores.contiguous(),
        out,
        num_columns=num_columns,
        padded=triton.next_power_of_2(num_columns),
        k=k,
        log_slots=(max(k, NETWORK) - 1).bit_length(),
        log_network=(NETWORK - 1).bit_length(),
        below_all=BELOW_ALL,
        num_warps=num_warps,
    )
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
