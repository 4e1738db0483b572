"""Compare the drafter's choice of a token with vLLM's: first whether it is the same one, then how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from timing import DEVICE, VOCABULARY, timed
from vllm.model_executor.models.gemma4_mtp import Gemma4MTPMaskedEmbedder

from paddock_stack.kernels.best_centroids import best_centroids
from paddock_stack.kernels.sparse_argmax import sparse_argmax
from paddock_stack.kernels.sparse_argmax_triton import launch_choice
from paddock_stack.plugin import rebindings


def argmaxes() -> dict[str, Any]:
    """Compare the drafter's choice of a token, vLLM's and the fused one, and our choice of centroids with torch's."""
    figures: dict[str, Any] = {}
    for k in (32, 48):
        embedder = Gemma4MTPMaskedEmbedder(256, VOCABULARY, 2048, k).to(DEVICE, torch.bfloat16)
        embedder.token_ordering.copy_(torch.randperm(VOCABULARY))
        head = torch.randn(VOCABULARY, 256, device=DEVICE).bfloat16()
        states = torch.randn(100_000, 256, device=DEVICE).bfloat16()
        ways = {"stock": Gemma4MTPMaskedEmbedder.get_top_tokens, "fused": rebindings.fused_top_tokens}
        rows = states[:24].split(1)
        figures[f"k{k}"] = {
            name: {
                "same_of_100000": _same(way, ways["stock"], embedder, states, head),
                "us": timed([partial(way, embedder, row, head) for row in rows]),
            }
            for name, way in ways.items()
        }
        scores = [embedder.centroids(row) for row in rows]
        figures[f"k{k}"]["choice_us"] = {
            "torch": timed([partial(torch.topk, each, k) for each in scores]),
            **{warps: timed([partial(launch_choice, each, k, warps) for each in scores]) for warps in (2, 4, 8, 16)},
        }
        figures[f"k{k}"]["fused_after_choice_us"] = timed(_after_choice(embedder, rows, head))
    shapes = [(k, 2048) for k in (1, 5, 31, 32, 33, 48, 64, 128)] + [(32, 1000), (5, 40)]
    figures["choices"] = {f"{k} of {wide}": _choices(embedder.centroids(states)[:, :wide], k) for k, wide in shapes}
    return figures


def _after_choice(embedder: Any, rows: Sequence[torch.Tensor], head: torch.Tensor) -> list[Callable[..., Any]]:
    """Return calls of what is left of the fused argmax once the centroids are chosen."""
    ordering = embedder.token_ordering.view(embedder.num_centroids, embedder.vocab_size_per_centroid)
    chosen = [torch.topk(embedder.centroids(row), embedder.centroid_intermediate_top_k).indices for row in rows]
    return [partial(sparse_argmax, row, each, ordering, head) for row, each in zip(rows, chosen, strict=True)]


def _choices(scores: torch.Tensor, k: int) -> dict[str, int]:
    """Count for how many rows our columns, and their set alone, are those of torch's top-k.

    `tied` rows have equal scores among their k + 1 best; rounded to eighths (`coarse`), nearly all have.
    """
    counts = dict.fromkeys(("of", "same", "same_set", "tied", "coarse_same", "coarse_same_set", "coarse_tied"), 0)
    for some in (*scores.split(500), *scores[:200].split(1)):
        counts["of"] += len(some)
        for name, each in (("", some), ("coarse_", some.mul(8).round().div(8))):
            ours, theirs = best_centroids(each, k), torch.topk(each, k, dim=-1).indices
            best = torch.topk(each, k + 1, dim=-1).values
            counts[f"{name}same"] += int((ours == theirs).all(dim=1).sum())
            counts[f"{name}same_set"] += int((ours.sort().values == theirs.sort().values).all(dim=1).sum())
            counts[f"{name}tied"] += int((best.diff(dim=1) == 0).any(dim=1).sum())
    return counts


def _same(way: Any, stock: Any, embedder: Any, states: torch.Tensor, head: torch.Tensor) -> int:
    """Return for how many of `states` two ways choose the same token."""
    return sum(int((way(embedder, some, head) == stock(embedder, some, head)).sum()) for some in states.split(500))
