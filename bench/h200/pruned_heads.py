"""Hold the pruned head's kernels against the fp32 reference, eight hidden states at a time."""

from __future__ import annotations

from typing import Any

import torch

from paddock_stack.kernels import pruned_head
from paddock_stack.kernels.int4 import Int4Rows

SOFT_CAP = 30.0


def agreement(
    states: torch.Tensor, head: torch.Tensor | Int4Rows, keep: torch.Tensor, vocabulary: int
) -> dict[str, Any]:
    """Count for how many of `states` [num_states, hidden_size] (bf16) the kernels choose the reference's token.

    `best` also counts those whose token has, in the reference, a logit that bf16 can't tell from the highest: two
    tokens of one rounded logit are a tie, and the leftmost wins. `error` is that of the logits, |y - r| / |r|, and
    `scattered` counts the states whose logits are finite at the kept tokens and -inf elsewhere.
    """
    counts, wrong, whole = {"of": 0, "same": 0, "best": 0, "scattered": 0}, 0.0, 0.0
    for some in states.split(8):
        wanted = pruned_head.reference_logits(some, head, keep, vocabulary, None)
        got = pruned_head.argmax(some, head, keep)
        highest, chosen = wanted.max(-1), wanted.gather(1, got[:, None])[:, 0]
        counts["of"] += len(some)
        counts["same"] += int((got == highest.indices).sum())
        counts["best"] += int((highest.values - chosen <= highest.values.abs() * 2.0**-7).sum())
        capped = pruned_head.reference_logits(some, head, keep, vocabulary, SOFT_CAP)
        logits = pruned_head.logits(some, head, keep, vocabulary, SOFT_CAP).float()
        counts["scattered"] += int((logits.isfinite() == capped.isfinite()).all(-1).sum())
        wrong += float((logits[:, keep] - capped[:, keep]).square().sum())
        whole += float(capped[:, keep].square().sum())
    return {**counts, "error": float(f"{(wrong / whole) ** 0.5:.2e}")}
