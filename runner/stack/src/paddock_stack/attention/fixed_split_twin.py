"""The fixed split in torch, row by row, and plain attention in fp32 to hold it against."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from paddock_stack.attention.fixed_split_plan import Cut, cut_for


class Paged(NamedTuple):
    """The keys and values of some sequences: caches [blocks, block_size, kv_heads, head], the rest int32.

    `table` [sequences, blocks of the longest]; `lengths` [sequences] counts the query tokens in; `starts` says where
    the query tokens of each begin and has one entry more than there are sequences.
    """

    keys: torch.Tensor
    values: torch.Tensor
    table: torch.Tensor
    lengths: torch.Tensor
    starts: torch.Tensor


class Row(NamedTuple):
    """One query token: which row of the batch it is, its position, and the keys and values up to it."""

    token: int
    position: int
    keys: torch.Tensor  # [position + 1, heads, head]
    values: torch.Tensor

    def first(self, window: int) -> int:
        """Return the first key that this row sees."""
        return max(self.position - window + 1, 0) if window else 0


def reference(query: torch.Tensor, paged: Paged, window: int) -> torch.Tensor:
    """Return attention in fp32 [num_tokens, heads, head]; every row sees `window` keys, itself the last; 0: all."""
    told = torch.zeros(query.shape, dtype=torch.float32, device=query.device)
    for row in _rows(query, paged):
        seen = slice(row.first(window), None)
        scores = torch.einsum("hd,khd->hk", query[row.token].float(), row.keys[seen].float())
        told[row.token] = torch.einsum("hk,khd->hd", scores.softmax(dim=1), row.values[seen].float())
    return told


def twin(query: torch.Tensor, paged: Paged, window: int, cut: Cut | None = None) -> torch.Tensor:
    """Return what the kernels return, up to the order of sums within a segment; types and shapes as `reference`'s.

    Weights are rounded to the values' type before they meet them, as in vLLM; the result to the query's.
    """
    chosen = cut or cut_for(query.shape[2])
    told = torch.zeros_like(query)
    for row in _rows(query, paged):
        parts = [_part(query[row.token], row, span) for span in _spans(row, window, chosen.segment)]
        top = torch.stack([most for most, _, _ in parts]).amax(dim=0)
        total, mixed = torch.zeros_like(top), torch.zeros(query.shape[1:], device=query.device)
        for most, part_total, part_mixed in parts:
            weight = (most - top).exp()
            total += weight * part_total
            mixed += weight[:, None] * part_mixed
        told[row.token] = (mixed / total[:, None]).to(query.dtype)
    return told


def _part(query: torch.Tensor, row: Row, span: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    scores = torch.einsum("hd,khd->hk", query.float(), row.keys[span].float())
    most = scores.amax(dim=1)
    weights = (scores - most[:, None]).exp()
    values = row.values[span]
    return most, weights.sum(dim=1), torch.einsum("hk,khd->hd", weights.to(values.dtype).float(), values.float())


def _spans(row: Row, window: int, segment: int) -> Iterator[slice]:
    """Yield the keys that the row sees, cut at multiples of `segment`."""
    begin = row.first(window)
    while begin <= row.position:
        end = min((begin // segment + 1) * segment, row.position + 1)
        yield slice(begin, end)
        begin = end


def _rows(query: torch.Tensor, paged: Paged) -> Iterator[Row]:
    """Yield the query tokens, with keys and values repeated for the query heads that share them."""
    group = query.shape[1] // paged.keys.shape[2]
    for sequence, (length, start) in enumerate(zip(paged.lengths.tolist(), paged.starts.tolist()[:-1], strict=True)):
        place = torch.arange(length, device=query.device)
        block = paged.table[sequence][place // paged.keys.shape[1]].long()
        slot = place % paged.keys.shape[1]
        keys = paged.keys[block, slot].repeat_interleave(group, dim=1)
        values = paged.values[block, slot].repeat_interleave(group, dim=1)
        count = int(paged.starts[sequence + 1]) - start
        for token in range(count):
            position = length - count + token
            yield Row(start + token, position, keys[: position + 1], values[: position + 1])
