"""Tasks of the zygote that hold the choice of centroids against torch's GPU algorithm, written out in plain Python.

They run in the server environment, where torch is; every one asserts and returns nothing.
"""

from __future__ import annotations

import math
import sys

import torch

from paddock_stack.kernels import best_centroids

COUNTS = (1, 5, 31, 32, 33, 48, 64, 128)
COLUMNS = (128, 200, 2048)
Slot = tuple[float, int, bool]  # score, column, whether something is there


def twin_is_torchs() -> None:
    """The twin returns what torch's algorithm does, over scores that often are equal; the operator returns it too."""
    for scores in _tied():
        for k in COUNTS:
            chosen = best_centroids.best_centroids(scores, k)
            assert torch.equal(chosen, best_centroids.twin(scores, k))
            assert chosen.tolist() == [_torchs_top_k(row, k) for row in scores.tolist()]


def twin_is_top_k_without_ties() -> None:
    """Where no two scores are equal, the columns are those of torch.topk on any machine."""
    draw = torch.Generator().manual_seed(0)
    scores = torch.stack([torch.randperm(250, generator=draw)[:200] for _ in range(6)]).sub(125).bfloat16()
    for k in COUNTS:
        assert torch.equal(best_centroids.twin(scores, k), scores.topk(k, dim=1).indices)


def other_scores_do_not_fit() -> None:
    """Neither other types, nor more columns than there are or than torch merges, nor rows too wide to count.

    The last line raises.
    """
    scores = torch.zeros(2, 200, dtype=torch.bfloat16)
    assert [k for k in range(300) if best_centroids.fits(scores, k)] == list(range(1, 129))
    assert [k for k in range(300) if best_centroids.fits(scores[:, :40], k)] == list(range(1, 41))
    assert not best_centroids.fits(scores.float(), 5)
    assert not best_centroids.fits(torch.zeros(1, 1 << 15, dtype=torch.bfloat16), 5)
    best_centroids.best_centroids(scores.float(), 5)


def triton_is_the_twin(path: str) -> None:
    """The Triton kernel, interpreted, returns the twin's columns."""
    sys.path.append(path)
    from paddock_stack.kernels.sparse_argmax_triton import launch_choice

    for scores in _tied():
        for k in COUNTS:
            assert torch.equal(launch_choice(scores, k), best_centroids.twin(scores, k)), (scores.shape, k)


def _tied() -> list[torch.Tensor]:
    """Return scores [6, n]: spread out, coarse, of a few values about both zeros, of zeros alone, and infinite ones."""
    draw, made = torch.Generator().manual_seed(0), []
    for columns in COLUMNS:
        scores = torch.randn(6, columns, generator=draw)
        scores[1] = scores[1].mul(4).round()
        scores[2] = scores[2].round().clamp(-1, 1)
        scores[3] = torch.where(scores[3] > 1.5, 0.0, -0.0)
        scores[4] = torch.where(scores[4] > 0, scores[4].round(), float("-inf"))
        scores[5] = torch.where(scores[5] > 1, float("inf"), -scores[5].abs().round())
        made.append(scores.bfloat16())
    return made


def _torchs_top_k(scores: list[float], k: int) -> list[int]:
    """Return what torch 2.11 does on a GPU: select by bits and gather, then sort the gathered."""
    bits = [(score, math.copysign(1, score)) for score in scores]  # -0.0 comes before 0.0
    kth = sorted(bits, reverse=True)[k - 1]
    above = [column for column, each in enumerate(bits) if each > kth]
    gathered = above + [column for column, each in enumerate(bits) if each == kth][: k - len(above)]
    assert sorted(gathered) == sorted(sorted(range(len(bits)), key=lambda column: bits[column], reverse=True)[:k])
    if k > 32:
        return sorted(gathered, key=lambda column: scores[column], reverse=True)  # stable
    slots = [(scores[column], column, True) for column in gathered] + [(0.0, 0, False)] * (32 - k)
    _bitonic_sort(slots)
    return [column for _, column, _ in slots[:k]]


def _bitonic_sort(slots: list[Slot]) -> None:
    """Sort 32 `slots` in place with sixteen threads of two each."""
    size = 2
    while size < 32:
        for thread_stride in _halves(size // 2):
            for thread in range(16):
                _compare(slots, thread, thread_stride, direction=(thread & (size // 2)) != 0)
        size *= 2
    for thread_stride in _halves(16):
        for thread in range(16):
            _compare(slots, thread, thread_stride, direction=False)


def _halves(stride: int) -> list[int]:
    return [stride >> step for step in range(stride.bit_length())]


def _compare(slots: list[Slot], thread: int, stride: int, *, direction: bool) -> None:
    here = 2 * thread - (thread & (stride - 1))
    (first, _, first_is), (second, _, second_is) = slots[here], slots[here + stride]
    if ((first > second and first_is) or not second_is) == direction:
        slots[here], slots[here + stride] = slots[here + stride], slots[here]
