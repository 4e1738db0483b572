"""Pick a draft token among the tokens of the chosen centroids without gathering their embeddings.

Gemma 4's drafter scores centroids, takes the best k of them, and looks only at the tokens these own: k x 128 rows of
the head. vLLM copies those rows together (3 MB a draft step), multiplies, and takes the argmax in several launches;
here two kernels read each row once.
"""

from __future__ import annotations

import torch

from paddock_stack.kernels.ties import leftmost_argmax

BLOCK = 32  # rows of one program: 32 x 128 candidates then fill 128 of an H200's 132 processors at one token


def reference(hidden: torch.Tensor, chosen: torch.Tensor, ordering: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return the best token [num_tokens] (int64) in fp32, without any rounding of the scores.

    Args:
        hidden: [num_tokens, hidden_size].
        chosen: the centroids to look at, best first, [num_tokens, k] (int64).
        ordering: the tokens that each centroid owns, [num_centroids, tokens_per_centroid] (int64).
        weight: the drafter's head, [vocab_size, hidden_size].
    """
    candidates = ordering[chosen].flatten(1)
    scores = torch.einsum("td,tsd->ts", hidden.float(), weight[candidates].float())
    return candidates.gather(1, leftmost_argmax(scores)[:, None])[:, 0]


def twin(hidden: torch.Tensor, chosen: torch.Tensor, ordering: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return what the kernels return, in torch: fp32 sums rounded to the weights' type, blocks, left tie-break.

    Shapes as in `reference`.
    """
    candidates = ordering[chosen].flatten(1)
    scores = torch.einsum("td,tsd->ts", hidden.float(), weight[candidates].float()).to(weight.dtype).float()
    padded = torch.nn.functional.pad(scores, (0, -scores.shape[1] % BLOCK), value=float("-inf"))
    blocks = padded.unflatten(1, (-1, BLOCK))
    in_block = leftmost_argmax(blocks.flatten(0, 1)).view(blocks.shape[:2])
    best = leftmost_argmax(blocks.amax(dim=2))
    within = in_block.gather(1, best[:, None])[:, 0]
    return candidates.gather(1, (best * BLOCK + within)[:, None])[:, 0]


@torch.library.custom_op("paddock::sparse_argmax", mutates_args=())  # type: ignore[untyped-decorator]  # torch is not seen here
def sparse_argmax(
    hidden: torch.Tensor, chosen: torch.Tensor, ordering: torch.Tensor, weight: torch.Tensor
) -> torch.Tensor:
    """Return the best token [num_tokens] (int64) among those of the chosen centroids. Shapes as in `reference`.

    Scores are rounded to the weights' type before they are compared, as vLLM's own product does, and the leftmost of
    equal ones wins. On a GPU this is two launches, safe to capture in a CUDA graph.
    """
    if not hidden.is_cuda:
        return twin(hidden, chosen, ordering, weight)
    from paddock_stack.kernels import sparse_argmax_triton

    return sparse_argmax_triton.launch(hidden, chosen, ordering, weight)


@sparse_argmax.register_fake  # type: ignore[untyped-decorator]  # torch is not seen here
def _shape(hidden: torch.Tensor, chosen: torch.Tensor, ordering: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    del ordering, weight
    return torch.empty(hidden.shape[0], dtype=chosen.dtype, device=hidden.device)
