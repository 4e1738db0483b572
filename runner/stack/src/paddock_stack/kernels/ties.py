"""Find the largest of many scores, the leftmost among equals, as the kernels do."""

from __future__ import annotations

import torch


def leftmost_argmax(scores: torch.Tensor) -> torch.Tensor:
    """Return, for `scores` [rows, columns], the first column [rows] (int64) that holds its row's maximum.

    `torch.argmax` leaves open which of equal columns it names; bfloat16 scores are often equal.
    """
    columns = torch.arange(scores.shape[1], device=scores.device)
    is_best = scores == scores.amax(dim=1, keepdim=True)
    return torch.where(is_best, columns, scores.shape[1]).amin(dim=1)
