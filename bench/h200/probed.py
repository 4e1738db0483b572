"""Tell what paddock_stack's probe of steps costs the host, in an engine of this process that was started with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from paddock_stack.steptime.probe import Probe, clock_of, methods

REQUESTS = 8


def cost(decode: Callable[[int], Any], told: Path) -> dict[str, Any]:
    """Return the share of the time of `REQUESTS` requests that goes to the probe, and what the engine's own wrote.

    Requests with and without it differ by more than it costs, so its wrappers are put on anew between two stopwatches:
    what the outer one counts beyond the inner one is the probe's, its file included, and what the stopwatches cost
    without a probe between them, which is told as well. `decode` takes a seed.
    """
    import torch

    wrote = json.loads(told.read_text())
    probe = Probe(told, clock_of(on_gpu=torch.cuda.is_available()))
    return {"none": _share(decode, _untimed), "probe": _share(decode, probe.timed), "told": wrote}


def _untimed(_kind: str, call: Callable[..., Any]) -> Callable[..., Any]:
    return call


def _share(decode: Callable[[int], Any], timed: Callable[[str, Callable[..., Any]], Any]) -> dict[str, float]:
    outer, inner = Spent(), Spent()
    probed = [(owner, name, getattr(owner, name)) for owner, name in methods()]
    for owner, name, wrapped in probed:
        setattr(owner, name, outer.around(timed(name, inner.around(wrapped.__wrapped__))))
    began = time.perf_counter()
    for seed in range(1, REQUESTS + 1):
        decode(seed)
    seconds = time.perf_counter() - began
    for owner, name, wrapped in probed:
        setattr(owner, name, wrapped)
    spent = outer.seconds - inner.seconds
    return {"share": round(spent / seconds, 5), "us_a_call": round(spent / outer.calls * 1e6, 2), "calls": outer.calls}


class Spent:
    """Counts calls and the host's seconds in them."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, 0

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return `call`, counted."""

        @wraps(call)
        def counted(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            result = call(*arguments, **named)
            self.seconds += time.perf_counter() - began
            self.calls += 1
            return result

        return counted
