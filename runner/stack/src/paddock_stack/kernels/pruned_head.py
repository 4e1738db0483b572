"""Turn hidden states into logits, or straight into the best token, with a head of a few thousand rows.

Row i of a pruned head belongs to token `keep_ids[i]`. vLLM wants logits over the whole vocabulary, so the rest is
-inf; for greedy decoding the argmax can be taken among the rows and mapped afterwards.
"""

from __future__ import annotations

import torch

from paddock_stack.kernels.int4 import Int4Rows, dequantized
from paddock_stack.kernels.ties import leftmost_argmax


def scatter_rows(rows: torch.Tensor, keep_ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    """Return logits [num_tokens, vocab_size] that are `rows` [num_tokens, num_kept] at `keep_ids` [num_kept] (int64)
    and -inf elsewhere."""
    logits = rows.new_full((rows.shape[0], vocab_size), float("-inf"))
    return logits.index_copy_(1, keep_ids, rows)


def reference_logits(
    hidden: torch.Tensor, head: torch.Tensor | Int4Rows, keep_ids: torch.Tensor, vocab_size: int, soft_cap: float | None
) -> torch.Tensor:
    """Return the logits [num_tokens, vocab_size] in fp32.

    Args:
        hidden: [num_tokens, hidden_size].
        head: [num_kept, hidden_size], or its int4 form.
        keep_ids: [num_kept] (int64), ascending.
        vocab_size: columns of the result.
        soft_cap: c of c * tanh(x / c), or None for none.
    """
    rows = hidden.float() @ _plain(head).T
    if soft_cap is not None:
        rows = soft_cap * torch.tanh(rows / soft_cap)
    return scatter_rows(rows, keep_ids, vocab_size)


def twin_logits(
    hidden: torch.Tensor, head: torch.Tensor | Int4Rows, keep_ids: torch.Tensor, vocab_size: int, soft_cap: float | None
) -> torch.Tensor:
    """Return what `logits` returns, in torch: fp32 sums and cap, rounded once to the type of `hidden`."""
    return reference_logits(hidden, head, keep_ids, vocab_size, soft_cap).to(hidden.dtype)


def twin_argmax(hidden: torch.Tensor, head: torch.Tensor | Int4Rows, keep_ids: torch.Tensor) -> torch.Tensor:
    """Return what `argmax` returns, in torch: fp32 sums rounded to the type of `hidden`, the leftmost of equals."""
    rows = (hidden.float() @ _plain(head).T).to(hidden.dtype).float()
    return keep_ids[leftmost_argmax(rows)]


def logits(
    hidden: torch.Tensor, head: torch.Tensor | Int4Rows, keep_ids: torch.Tensor, vocab_size: int, soft_cap: float | None
) -> torch.Tensor:
    """Return logits [num_tokens, vocab_size] in the type of `hidden`; on a GPU a fill and one kernel.

    Shapes as in `reference_logits`; at most 16 tokens on a GPU. vLLM rounds before and after the cap, this only once:
    equal within one unit in the last place.
    """
    if not hidden.is_cuda:
        return twin_logits(hidden, head, keep_ids, vocab_size, soft_cap)
    from paddock_stack.kernels import pruned_head_triton

    return pruned_head_triton.launch_logits(hidden, head, keep_ids, vocab_size, soft_cap)


def argmax(hidden: torch.Tensor, head: torch.Tensor | Int4Rows, keep_ids: torch.Tensor) -> torch.Tensor:
    """Return the best token [num_tokens] (int64) of each hidden state; on a GPU two kernels, no logits written.

    The soft cap keeps the order and is left out; where it makes two logits of vLLM equal, this still tells them apart.
    """
    if not hidden.is_cuda:
        return twin_argmax(hidden, head, keep_ids)
    from paddock_stack.kernels import pruned_head_triton

    return pruned_head_triton.launch_argmax(hidden, head, keep_ids)


def _plain(head: torch.Tensor | Int4Rows) -> torch.Tensor:
    return dequantized(head) if isinstance(head, Int4Rows) else head.float()
