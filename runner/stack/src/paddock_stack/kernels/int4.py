"""Read and write compressed-tensors' packed int4 weights in torch.

Eight values of -8..7, each plus eight, lie in one int32 along the input dimension, the first in the lowest bits:
`weight_packed` is [out, in / 8], `weight_scale` [out, in / group_size], or [out, 1] for one scale a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

PER_WORD = 8
ZERO = 8


@dataclass(frozen=True)
class Int4Rows:
    """Packed int4 rows: `packed` [out, in / 8] int32 and `scales` [out, in / group_size] in the activations' type."""

    packed: torch.Tensor
    scales: torch.Tensor

    @property
    def rows(self) -> int:
        """Return how many rows there are."""
        return int(self.packed.shape[0])

    @property
    def columns(self) -> int:
        """Return how many values a row has."""
        return int(self.packed.shape[1]) * PER_WORD

    @property
    def group_size(self) -> int:
        """Return how many neighbouring values of a row share a scale."""
        return self.columns // int(self.scales.shape[1])


def quantized(weight: torch.Tensor, group_size: int | None) -> Int4Rows:
    """Round `weight` [out, in] to the nearest int4 values, symmetrically; `group_size` None gives one scale a row."""
    groups = weight.float().unflatten(1, (-1, group_size or weight.shape[1]))
    scales = (groups.abs().amax(dim=2) / 7).clamp_min(1e-8).to(weight.dtype)
    values = (groups / scales.float()[..., None]).round().clamp(-8, 7).flatten(1)
    return Int4Rows(packed(values.to(torch.int64)), scales)


def packed(values: torch.Tensor) -> torch.Tensor:
    """Pack whole numbers of -8..7, [out, in], into int32 words [out, in / 8]."""
    nibbles = (values.to(torch.int64) + ZERO).unflatten(1, (-1, PER_WORD))
    shifts = 4 * torch.arange(PER_WORD, device=values.device)
    words = (nibbles << shifts).sum(dim=2)
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def unpacked(words: torch.Tensor) -> torch.Tensor:
    """Return the values of -8..7, [out, in] (int32), of packed `words` [out, in / 8]."""
    shifts = 4 * torch.arange(PER_WORD, device=words.device, dtype=torch.int32)
    return ((words[..., None] >> shifts & 15) - ZERO).flatten(1)


def dequantized(rows: Int4Rows) -> torch.Tensor:
    """Return the weights [out, in] in fp32."""
    values = unpacked(rows.packed).float().unflatten(1, (-1, rows.group_size))
    return (values * rows.scales.float()[..., None]).flatten(1)
