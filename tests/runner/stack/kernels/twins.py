"""Tasks of the zygote that hold kernels' torch twins against fp32 references, and Triton code against the twins.

They run in the server environment, where torch is; every one asserts and returns nothing.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from paddock_stack.kernels import best_centroids, int4, pruned_head, sparse_argmax
from paddock_stack.kernels.int4 import Int4Rows
from paddock_stack.kernels.ties import leftmost_argmax

TYPES = (torch.float32, torch.float16, torch.bfloat16)
Case = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def ties() -> None:
    """The leftmost of equal columns wins."""
    scores = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -1.0, 0.5]])
    assert leftmost_argmax(scores).tolist() == [1, 0, 2]


def packing() -> None:
    """Packing is compressed-tensors' own, and unpacking undoes it."""
    from compressed_tensors.compressors import pack_to_int32

    values = torch.randint(-8, 8, (24, 64), generator=torch.Generator().manual_seed(0))
    assert torch.equal(int4.packed(values), pack_to_int32(values.to(torch.int8), 4))
    assert torch.equal(int4.unpacked(int4.packed(values)), values.to(torch.int32))


def quantising() -> None:
    """No value is further from its weight than half a step of its group."""
    weight = torch.randn(16, 64, generator=torch.Generator().manual_seed(0))
    for group_size in (16, 32, None):
        rows = int4.quantized(weight, group_size)
        steps = rows.scales.float().repeat_interleave(rows.group_size, dim=1)
        assert ((int4.dequantized(rows) - weight).abs() <= 0.5001 * steps).all()


def argmax_twin() -> None:
    """The twin picks a token whose fp32 score is the best one up to its own rounding, and is exact in fp32."""
    for dtype in TYPES:
        for seed in range(20):
            case = _drafting(seed, dtype, tokens=5, centroids=16, per_centroid=10, k=3)
            twin, reference = sparse_argmax.twin(*case), sparse_argmax.reference(*case)
            if dtype == torch.float32:
                assert torch.equal(twin, reference)
            hidden, weight = case[0].float(), case[3].float()
            best = (hidden * weight[reference]).sum(1)
            assert ((hidden * weight[twin]).sum(1) >= best - 2 * torch.finfo(dtype).eps * best.abs()).all()


def argmax_breaks_ties_to_the_left() -> None:
    """Of equal candidates the first one is chosen, in one block or across blocks."""
    hidden = torch.ones(1, 8, dtype=torch.bfloat16)
    weight = torch.ones(200, 8, dtype=torch.bfloat16)
    ordering = torch.randperm(200, generator=torch.Generator().manual_seed(0)).view(4, 50)
    chosen = torch.tensor([[2, 0]])
    assert sparse_argmax.sparse_argmax(hidden, chosen, ordering, weight).tolist() == [int(ordering[2, 0])]


def argmax_is_vllms() -> None:
    """The rebound method returns what vLLM's own returns, forced ties included."""
    from vllm.model_executor.models.gemma4_mtp import Gemma4MTPMaskedEmbedder

    from paddock_stack.plugin.rebindings import fuse_sparse_argmax

    plain = Gemma4MTPMaskedEmbedder.get_top_tokens
    fuse_sparse_argmax()
    assert Gemma4MTPMaskedEmbedder.get_top_tokens is not plain
    for seed in range(200):
        torch.manual_seed(seed)
        embedder = Gemma4MTPMaskedEmbedder(32, 512, 16, 3)
        embedder.token_ordering.copy_(torch.randperm(512))
        weight = torch.randn(512, 32)
        weight[torch.randperm(512)[:100]] = weight[0].clone()  # a hundred equal rows
        hidden = torch.randn(4, 32)
        assert torch.equal(embedder.get_top_tokens(hidden, weight), plain(embedder, hidden, weight))


def argmax_in_bfloat16_is_vllms() -> None:
    """In bfloat16, where our operator chooses, the rebound method returns what vLLM's own does unless centroids tie.

    Whole numbers make the tokens' scores exact in any order of summation, and often equal.
    """
    from vllm.model_executor.models.gemma4_mtp import Gemma4MTPMaskedEmbedder

    from paddock_stack.plugin.rebindings import fuse_sparse_argmax

    plain = Gemma4MTPMaskedEmbedder.get_top_tokens
    fuse_sparse_argmax()
    torch.manual_seed(0)
    embedder = Gemma4MTPMaskedEmbedder(32, 512, 16, 3).bfloat16()
    embedder.token_ordering.copy_(torch.randperm(512))
    weight, hidden = torch.randint(-2, 3, (512, 32)).bfloat16(), torch.randint(-2, 3, (400, 32)).bfloat16()
    untied = (embedder.centroids(hidden).sort(dim=1).values.diff(dim=1) != 0).all(dim=1)
    assert untied.sum() > 100
    with mock.patch.object(best_centroids, "best_centroids", wraps=best_centroids.best_centroids) as choosing:
        ours = embedder.get_top_tokens(hidden, weight)
    choosing.assert_called_once()
    assert torch.equal(ours[untied], plain(embedder, hidden, weight)[untied])


def argmax_is_a_whole_head_when_all_centroids_are_chosen() -> None:
    """With every centroid chosen, the sparse argmax is that of the whole head."""
    hidden, _, ordering, weight = _drafting(3, torch.float32, tokens=8, centroids=16, per_centroid=10, k=3)
    everything = torch.arange(16).expand(8, 16).contiguous()
    best = sparse_argmax.sparse_argmax(hidden, everything, ordering, weight)
    assert torch.equal(best, (hidden @ weight.T).argmax(dim=1))


def operators_have_shapes() -> None:
    """torch's own checker accepts schema and fake implementations of the operators."""
    case = _drafting(0, torch.float32, tokens=5, centroids=16, per_centroid=10, k=3)
    torch.library.opcheck(sparse_argmax.sparse_argmax, case)
    torch.library.opcheck(best_centroids.best_centroids, (torch.randn(3, 64).bfloat16(), 4))


def head_twins() -> None:
    """Scattered logits are the masked whole head's; the argmax among rows is theirs."""
    for dtype in TYPES:
        for head, plain in _heads(dtype):
            hidden = torch.randn(5, 64, generator=torch.Generator().manual_seed(1)).to(dtype)
            keep = torch.arange(0, 160, 2)
            logits = pruned_head.logits(hidden, head, keep, 200, 30.0)
            whole = 30 * torch.tanh(hidden.float() @ plain.T / 30)
            assert logits.dtype == dtype
            assert torch.allclose(logits[:, keep].float(), whole, rtol=2 * torch.finfo(dtype).eps, atol=1e-5)
            assert logits.isneginf().sum() == 5 * 120
            if dtype == torch.float32:
                assert torch.equal(pruned_head.argmax(hidden, head, keep), logits.argmax(dim=1))


def triton_is_the_twin(path: str) -> None:
    """Every Triton kernel, interpreted, returns its twin's result. bfloat16 is left out: the interpreter's dot product
    takes its bits for whole numbers."""
    sys.path.append(path)
    _interpret_sparse_argmax()
    _interpret_pruned_head()


def _interpret_sparse_argmax() -> None:
    from paddock_stack.kernels import sparse_argmax_triton

    for dtype in TYPES:
        for tokens, k in ((1, 3), (4, 5)):
            case = _drafting(tokens, dtype, tokens=tokens, centroids=16, per_centroid=10, k=k)
            case[3][::3] = case[3][0].clone()  # ties
            assert torch.equal(sparse_argmax_triton.launch(*case), sparse_argmax.twin(*case))


def _interpret_pruned_head() -> None:
    from paddock_stack.kernels import pruned_head_triton

    keep = torch.arange(0, 160, 2)
    for dtype in (torch.float32, torch.float16):
        hidden = torch.randn(5, 64, generator=torch.Generator().manual_seed(1)).to(dtype)
        for head, _ in _heads(dtype):
            for cap in (30.0, None):
                told = pruned_head_triton.launch_logits(hidden, head, keep, 200, cap)
                meant = pruned_head.twin_logits(hidden, head, keep, 200, cap)
                assert torch.equal(told.isneginf(), meant.isneginf())
                assert torch.allclose(told[:, keep], meant[:, keep], rtol=1e-3, atol=1e-5)
            told = pruned_head_triton.launch_argmax(hidden, head, keep)
            assert torch.equal(told, pruned_head.twin_argmax(hidden, head, keep))


def _drafting(seed: int, dtype: torch.dtype, **shape: Any) -> Case:
    """Return hidden states, chosen centroids, ordering and head of a drafter of that shape."""
    said, draw = SimpleNamespace(**shape), torch.Generator().manual_seed(seed)
    vocabulary = said.centroids * said.per_centroid
    hidden = torch.randn(said.tokens, 48, generator=draw).to(dtype)
    chosen = torch.stack([torch.randperm(said.centroids, generator=draw)[: said.k] for _ in range(said.tokens)])
    ordering = torch.randperm(vocabulary, generator=draw).view(said.centroids, said.per_centroid)
    return hidden, chosen, ordering, torch.randn(vocabulary, 48, generator=draw).to(dtype)


def _heads(dtype: torch.dtype) -> list[tuple[torch.Tensor | Int4Rows, torch.Tensor]]:
    """Return a head of 80 rows in its three forms, each with its weights in fp32."""
    weight = torch.randn(80, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    packed = [int4.quantized(weight, 32), int4.quantized(weight, None)]
    return [(weight, weight.float()), *((each, int4.dequantized(each)) for each in packed)]
