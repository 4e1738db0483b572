"""Choose the centroids that a draft token is looked for in: the k best of some two thousand scores.

torch's top-k is two launches and takes longer than all the rest of the sparse argmax. It leaves open which of equal
scores it takes, and bfloat16 scores often are equal; here the lower index comes first, so a draft may differ from
vLLM's where the last one chosen and the first one left out are equal. Only drafts do: the target decides what is said.
"""

from __future__ import annotations

import torch


def twin(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return the `k` best columns of `scores` [num_tokens, num_centroids], best first, [num_tokens, k] (int64)."""
    return torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :k].contiguous()


@torch.library.custom_op("paddock::best_centroids", mutates_args=())  # type: ignore[untyped-decorator]  # torch is not seen here
def best_centroids(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return what `twin` returns; on a GPU in one launch, one program a token."""
    if not scores.is_cuda:
        return twin(scores, k)
    from paddock_stack.kernels import sparse_argmax_triton

    return sparse_argmax_triton.launch_choice(scores, k)


@best_centroids.register_fake  # type: ignore[untyped-decorator]  # torch is not seen here
def _shape(scores: torch.Tensor, k: int) -> torch.Tensor:
    return scores.new_empty((scores.shape[0], k), dtype=torch.int64)
