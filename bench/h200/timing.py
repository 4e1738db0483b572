"""Time calls on the GPU as they run when they are served: in a CUDA graph, over more memory than its cache holds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch

DEVICE = torch.device("cuda")
L2_BYTES = 60 << 20
VOCABULARY = 262_144


def timed(calls: Sequence[Callable[..., Any]], replays: int = 50) -> float:
    """Return the median microseconds of one of `calls`, captured together in one graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    graph.replay()
    spans: list[float] = []
    for _ in range(replays):
        began, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        began.record()
        graph.replay()
        ended.record()
        ended.synchronize()
        spans.append(began.elapsed_time(ended) * 1e3 / len(calls))
    return round(statistics.median(spans), 2)
