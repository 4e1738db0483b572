"""Choose the centroids that a draft token is looked for in: the k best of some two thousand scores, in torch's order.

torch's top-k is two launches and takes longer than all the rest of the sparse argmax. bfloat16 scores often are equal,
and the order of the centroids decides between equally good tokens, so what torch 2.11 does on a GPU is done here too:

1. The columns above the k-th best score are gathered from left to right, then as many equal to it as are missing.
   Here -0.0 is less than 0.0.
2. The gathered are sorted; here the two zeros are equal. Up to 32 pass a bitonic network of 32 places, which moves
   equal ones; more are merged, which leaves equal ones as they are.

Another torch may order ties otherwise. Only drafts would differ then: the target decides what is said.
"""

from __future__ import annotations

import torch

NETWORK = 32  # places of torch's network
MOST = 128  # what torch merges at most; it sorts more than that in a third way
WIDEST = 1 << 15  # below this, two counts of columns fit into one 32-bit number
BELOW_ALL = -(1 << 15)  # less than the key of -inf


def fits(scores: torch.Tensor, k: int) -> bool:
    """Return whether `best_centroids` takes `scores` [num_tokens, num_centroids] and `k`."""
    num_columns = int(scores.shape[1])
    return bool(scores.dtype == torch.bfloat16) and num_columns < WIDEST and 1 <= k <= min(MOST, num_columns)


def twin(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return the `k` best columns of `scores` [num_tokens, num_centroids], best first, [num_tokens, k] (int64)."""
    keys = _keys(scores)
    kth = keys.sort(dim=1, descending=True).values[:, k - 1 : k]
    group = 2 - (keys >= kth).int() - (keys > kth).int()
    gathered = group.sort(dim=1, stable=True).indices[:, :k]
    taken = keys.gather(1, gathered)
    return gathered.gather(1, _order(torch.where(taken == -1, 0, taken)))


def _keys(scores: torch.Tensor) -> torch.Tensor:
    """Return whole numbers (int32) that order like `scores`, which are no NaNs: -0.0 is -1 and 0.0 is 0."""
    bits = scores.contiguous().view(torch.int16).int()
    return torch.where(bits < 0, bits ^ 0x7FFF, bits)


def _order(keys: torch.Tensor) -> torch.Tensor:
    """Return which of `keys` [num_tokens, k] torch puts where, [num_tokens, k] (int64)."""
    k = keys.shape[1]
    if k > NETWORK:
        return keys.sort(dim=1, descending=True, stable=True).indices
    keys = torch.nn.functional.pad(keys, (0, NETWORK - k), value=BELOW_ALL)
    place = torch.arange(NETWORK, device=keys.device)
    order = place.expand_as(keys)
    for size, stride in _stages():
        partner = place ^ stride
        greater = keys[:, torch.minimum(place, partner)] > keys[:, torch.maximum(place, partner)]
        source = torch.where(greater == ((place & size) != 0), partner, place)
        keys, order = keys.gather(1, source), order.gather(1, source)
    return order[:, :k]


def _stages() -> list[tuple[int, int]]:
    """Return the stages of the network: the runs that are merged, and how far apart the compared are."""
    powers = range(NETWORK.bit_length() - 1)
    return [(2 << merged, 1 << apart) for merged in powers for apart in reversed(powers) if apart <= merged]


@torch.library.custom_op("paddock::best_centroids", mutates_args=())  # type: ignore[untyped-decorator]  # torch is not seen here
def best_centroids(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return what `twin` returns; on a GPU in one launch, one program a token.

    Raises ValueError for what doesn't fit.
    """
    if not fits(scores, k):
        raise ValueError(f"no {k} best columns are chosen of {scores.dtype} scores of shape {tuple(scores.shape)}")
    if not scores.is_cuda:
        return twin(scores, k)
    from paddock_stack.kernels import sparse_argmax_triton

    return sparse_argmax_triton.launch_choice(scores, k)


@best_centroids.register_fake  # type: ignore[untyped-decorator]  # torch is not seen here
def _shape(scores: torch.Tensor, k: int) -> torch.Tensor:
    return scores.new_empty((scores.shape[0], k), dtype=torch.int64)
