"""Time calls on the GPU as they run when they are served: in a CUDA graph, over more memory than its cache holds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

DEVICE = torch.device("cuda")
L2_BYTES = 60 << 20
VOCABULARY = 262_144


def timed(calls: Sequence[Callable[..., Any]], replays: int = 50) -> float:
    """Return the median microseconds of one of `calls`, captured together in one graph; each returns what it writes.

    Raises RuntimeError where a replay leaves any of that as it was: a graph that does nothing is very fast.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs: list[torch.Tensor] = tree_leaves([call() for call in calls])
    spoil(outputs)
    graph.replay()
    if not outputs or not all(is_written(each) for each in outputs):
        raise RuntimeError("a replay of the graph left an output unwritten")
    return round(median_us(graph.replay, replays) / len(calls), 2)


def median_us(run: Callable[[], Any], runs: int) -> float:
    """Return the median microseconds that the GPU takes for `run`."""
    spans: list[float] = []
    for _ in range(runs):
        began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        began.record()
        run()
        ended.record()
        ended.synchronize()
        spans.append(began.elapsed_time(ended) * 1e3)
    return statistics.median(spans)


def spoil(outputs: Sequence[torch.Tensor]) -> None:
    """Fill each with what no kernel here writes: NaN, or -1 for ids."""
    for each in outputs:
        each.fill_(float("nan") if each.is_floating_point() else -1)


def is_written(output: torch.Tensor) -> bool:
    """Return whether nothing is left of what `spoil` filled in."""
    return not bool((output.isnan() if output.is_floating_point() else output == -1).any())
