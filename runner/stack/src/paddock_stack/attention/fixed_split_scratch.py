"""The memory in which the fixed split's segments leave their partial results."""

from __future__ import annotations

from typing import NamedTuple

import torch


class Scratch(NamedTuple):
    """Flat fp32 tensors; every launch takes as much from their front as it needs."""

    mixed: torch.Tensor
    most: torch.Tensor
    total: torch.Tensor


def scratch(cells: int, head_size: int, device: torch.device) -> Scratch:
    """Return room for `cells` partial results of `head_size` columns."""
    sizes = (cells * head_size, cells, cells)
    return Scratch(*(torch.empty(size, dtype=torch.float32, device=device) for size in sizes))
