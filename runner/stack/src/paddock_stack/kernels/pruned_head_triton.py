"""The Triton kernels of the pruned head: products of its rows, ending in scattered logits or in an argmax."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from paddock_stack.kernels.int4 import Int4Rows
from paddock_stack.kernels.tiles_triton import TOKENS, int4_product, plain_product

ROWS = 32  # rows of one program: 12,288 rows are 384 programs
WIDTH = 128  # columns read at once


@triton.jit
def head_product(
    hidden,  # [num_tokens, hidden_size]
    weight,  # [num_rows, hidden_size], or [num_rows, hidden_size / 8] int32
    scales,  # [num_rows, hidden_size / group_size]; not read for plain rows
    keep_ids,  # [num_rows] int64
    logits,  # [num_tokens, vocab_size], filled with -inf; not written for an argmax
    best_scores,  # [num_tokens, num_blocks] float32; not written for logits
    best_rows,  # [num_tokens, num_blocks] int32; not written for logits
    num_rows,
    num_tokens,
    vocab_size,
    soft_cap,
    hidden_size: tl.constexpr,
    group_size: tl.constexpr,
    is_int4: tl.constexpr,
    is_capped: tl.constexpr,
    is_argmax: tl.constexpr,
    rows: tl.constexpr,
    tokens: tl.constexpr,
    width: tl.constexpr,
):
    """Multiply `rows` rows with every hidden state, then scatter the logits or keep the best row of the block."""
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    token = tl.arange(0, tokens)
    if is_int4:
        total = int4_product(
            hidden, weight, scales, row, num_rows, num_tokens, 0, hidden_size,
            hidden_size, group_size, rows, tokens, width,
        )  # fmt: skip
    else:
        total = plain_product(
            hidden, weight, row, num_rows, num_tokens, 0, hidden_size, hidden_size, rows, tokens, width
        )
    if is_argmax:
        rounded = total.to(hidden.dtype.element_ty).to(tl.float32)
        rounded = tl.where(row[:, None] < num_rows, rounded, float("-inf"))
        place = token * tl.num_programs(0) + tl.program_id(0)
        tl.store(best_scores + place, tl.max(rounded, axis=0), mask=token < num_tokens)
        winner = tl.program_id(0) * rows + tl.argmax(rounded, axis=0, tie_break_left=True)
        tl.store(best_rows + place, winner.to(tl.int32), mask=token < num_tokens)
    else:
        if is_capped:
            doubled = tl.exp(-2.0 * tl.abs(total / soft_cap))  # tanh of what is not negative, without overflow
            total = tl.where(total < 0, -soft_cap, soft_cap) * ((1.0 - doubled) / (1.0 + doubled))
        kept = tl.load(keep_ids + row, mask=row < num_rows, other=0)
        tl.store(
            logits + token[None, :].to(tl.int64) * vocab_size + kept[:, None],
            total.to(logits.dtype.element_ty),
            mask=(row[:, None] < num_rows) & (token[None, :] < num_tokens),
        )


@triton.jit
def best_row(
    best_scores,  # [num_tokens, num_blocks] float32
    best_rows,  # [num_tokens, num_blocks] int32
    keep_ids,  # [num_rows] int64
    out,  # [num_tokens] int64
    num_blocks: tl.constexpr,
    padded: tl.constexpr,
):
    """Write the token of the best row of all blocks; of equal ones, the leftmost."""
    token = tl.program_id(0)
    block = tl.arange(0, padded)
    scores = tl.load(best_scores + token * num_blocks + block, mask=block < num_blocks, other=float("-inf"))
    winner = tl.argmax(scores, axis=0, tie_break_left=True)
    row = tl.load(best_rows + token * num_blocks + winner)
    tl.store(out + token, tl.load(keep_ids + row))


def launch_logits(
    hidden: torch.Tensor, head: torch.Tensor | Int4Rows, keep_ids: torch.Tensor, vocab_size: int, soft_cap: float | None
) -> torch.Tensor:
    """Run the scattering kernel; shapes as in `pruned_head.reference_logits`."""
    out = hidden.new_full((hidden.shape[0], vocab_size), float("-inf"))
    _launch(hidden, head, keep_ids, logits=out, soft_cap=soft_cap)
    return out


def launch_argmax(hidden: torch.Tensor, head: torch.Tensor | Int4Rows, keep_ids: torch.Tensor) -> torch.Tensor:
    """Run the argmax kernels; shapes as in `pruned_head.reference_logits`."""
    num_tokens, num_blocks = hidden.shape[0], triton.cdiv(keep_ids.shape[0], ROWS)
    scores = torch.empty((num_tokens, num_blocks), dtype=torch.float32, device=hidden.device)
    rows = torch.empty((num_tokens, num_blocks), dtype=torch.int32, device=hidden.device)
    out = torch.empty(num_tokens, dtype=torch.int64, device=hidden.device)
    _launch(hidden, head, keep_ids, best=(scores, rows))
    best_row[(num_tokens,)](
        scores, rows, keep_ids, out, num_blocks=num_blocks, padded=triton.next_power_of_2(num_blocks)
    )
    return out


def _launch(
    hidden: torch.Tensor,
    head: torch.Tensor | Int4Rows,
    keep_ids: torch.Tensor,
    *,
    logits: torch.Tensor | None = None,
    soft_cap: float | None = None,
    best: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> None:
    is_int4 = isinstance(head, Int4Rows)
    weight, scales = (head.packed, head.scales) if isinstance(head, Int4Rows) else (head, head)
    num_tokens, hidden_size = hidden.shape
    if num_tokens > TOKENS.value:
        raise ValueError(f"the pruned head's kernels take at most {TOKENS.value} tokens, not {num_tokens}")
    group_size = head.group_size if isinstance(head, Int4Rows) else hidden_size
    head_product[(triton.cdiv(keep_ids.shape[0], ROWS),)](
        hidden.contiguous(),
        weight,
        scales,
        keep_ids,
        hidden if logits is None else logits,
        hidden if best is None else best[0],
        hidden if best is None else best[1],
        keep_ids.shape[0],
        num_tokens,
        0 if logits is None else logits.shape[1],
        soft_cap or 1.0,
        hidden_size=hidden_size,
        group_size=group_size,
        is_int4=is_int4,
        is_capped=soft_cap is not None,
        is_argmax=best is not None,
        rows=ROWS,
        tokens=TOKENS.value,
        width=min(WIDTH, group_size) if is_int4 else WIDTH,
    )
