"""Wrap vLLM's steps and drafts with a clock and keep a JSON file up to date with what it shows.

    {"clock": "cuda_event", "pid": 71, "steps": {"execute_model": {"calls": 2000, "paid_ms": 8.1, "count": 512,
     "mean_ms": 6.4, "max_ms": 9.1, "p50_ms": 6.3, "p90_ms": 6.6, "p99_ms": 7.0}, "propose": {…}}}

`execute_model` is the forward pass, `sample_tokens` what follows it (on the V1 runner with the draft inside it), and
`propose` the draft. Spans are the device's, from the moment its stream reaches the call to the moment it leaves it.
Of `calls`, `count` were timed: as many as the probe's allowance pays for, since on a GPU all would cost the host 4 %
(bench/H200.md). `paid_ms` is what it took.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from paddock_stack.shapes.guard import installed, require
from paddock_stack.shapes.needs import STEPTIME
from paddock_stack.steptime.allowance import Allowance
from paddock_stack.steptime.clocks import Clock, CudaClock, HostClock
from paddock_stack.steptime.series import Series

Returned = TypeVar("Returned")

WRITE_EVERY_S = 5.0
SETTLE_AT = 16  # spans; the device is asked about several at once
MOST_OPEN = 256  # spans waiting for the device; more means that it is never asked, and the oldest is let go


class Probe:
    """Time calls, as many as the allowance of their kind pays for, and write what was seen to `path`.

    vLLM calls from one thread. `now_s` is the host's clock.
    """

    def __init__(self, path: Path, clock: Clock, now_s: Callable[[], float] = time.perf_counter) -> None:
        self._path, self._clock, self._now_s = path, clock, now_s
        self._kinds: dict[str, _Kind] = {}
        self._open: deque[tuple[_Kind, Any, Any]] = deque(maxlen=MOST_OPEN)
        self._written_at_s: float | None = None

    def timed(self, kind: str, call: Callable[..., Returned]) -> Callable[..., Returned]:
        """Return `call` with its spans taken in as `kind`."""
        here = self._kinds.setdefault(kind, _Kind(Allowance()))

        @wraps(call)
        def measured(*arguments: Any, **named: Any) -> Returned:
            here.calls += 1
            is_timed, asked_s = here.allowance.has_left(), self._now_s()
            start = self._clock.mark() if is_timed else None
            began_s = self._now_s()
            result = call(*arguments, **named)
            ended_s = self._now_s()
            if is_timed:
                self._take_in(here, start, self._clock.mark())
            paid_s = began_s - asked_s + self._now_s() - ended_s if is_timed else 0.0
            here.allowance.settle(took_s=ended_s - began_s, paid_s=paid_s)
            return result

        return measured

    def told(self) -> dict[str, Any]:
        """Return what was seen so far, spans still open on the device left out."""
        self._settle()
        steps = {name: kind.told() for name, kind in sorted(self._kinds.items()) if kind.series.count}
        return {"clock": self._clock.name, "pid": os.getpid(), "steps": steps}

    def write(self) -> None:
        """Replace the file as a whole; does nothing before the first span."""
        told = self.told()
        if not told["steps"]:
            return
        self._written_at_s = self._now_s()
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        beside.write_text(json.dumps(told) + "\n", encoding="utf-8")
        beside.replace(self._path)

    def _take_in(self, kind: _Kind, start: Any, end: Any) -> None:
        if start is None or end is None:
            return
        self._open.append((kind, start, end))
        if len(self._open) >= SETTLE_AT:
            self._settle()
            if self._written_at_s is None or self._now_s() - self._written_at_s > WRITE_EVERY_S:
                self.write()

    def _settle(self) -> None:
        while self._open:
            kind, start, end = self._open[0]
            span_ms = self._clock.span_ms(start, end)
            if span_ms is None:
                return
            self._open.popleft()
            kind.series.add(span_ms)


@dataclass
class _Kind:
    allowance: Allowance
    series: Series = field(default_factory=Series)
    calls: int = 0

    def told(self) -> dict[str, float | int | None]:
        return {"calls": self.calls, "paid_ms": self.allowance.paid_s * 1000, **self.series.told()}


def watch(path: str, *, on_gpu: bool) -> None:
    """Time every step and draft of this process's vLLM into the file at `path`; a second call changes nothing.

    No GPU is asked for anything before the first step: the processes that vLLM forks from this one could not use it.
    Raises `UnknownLibrary` where the methods to wrap are not there.
    """
    require(STEPTIME)
    probe = Probe(Path(path), clock_of(on_gpu=on_gpu))
    for owner, method in methods():
        _wrap(owner, method, probe)
    atexit.register(probe.write)


def methods() -> list[tuple[type, str]]:
    """Return the classes and method names that are timed; a wrapped one has its plain self as `__wrapped__`."""
    found = [[place for place in need.places if installed().find(place)] for need in STEPTIME.needs]
    return [_method(places[0]) for places in found]


def _method(place: str) -> tuple[type, str]:
    module, _, name = place.partition(":")
    owner, _, method = name.partition(".")
    return getattr(importlib.import_module(module), owner), method


def _wrap(owner: type, method: str, probe: Probe) -> None:
    plain = getattr(owner, method)
    if not hasattr(plain, "paddock_steptime"):
        measured = probe.timed(method, plain)
        measured.paddock_steptime = True  # type: ignore[attr-defined]  # the mark of a method that is wrapped already
        setattr(owner, method, measured)


def clock_of(*, on_gpu: bool) -> Clock:
    """Return the clock of what vLLM runs on."""
    if not on_gpu:
        return HostClock()
    import torch

    return CudaClock(torch.cuda)
