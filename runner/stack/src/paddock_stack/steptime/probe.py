"""Wrap vLLM's steps and drafts with a clock and keep a JSON file up to date with what it shows.

    {"clock": "cuda_event", "pid": 71, "steps": {"execute_model": {"count": 512, "mean_ms": 6.4, "max_ms": 9.1,
     "p50_ms": 6.3, "p90_ms": 6.6, "p99_ms": 7.0}, "propose": {…}}}

`execute_model` is the forward pass, `sample_tokens` what follows it (on the V1 runner with the draft inside it), and
`propose` the draft. Spans are the device's, from the moment its stream reaches the call to the moment it leaves it.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import time
from collections import deque
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from paddock_stack.shapes.guard import installed, require
from paddock_stack.shapes.needs import STEPTIME
from paddock_stack.steptime.clocks import Clock, CudaClock, HostClock
from paddock_stack.steptime.series import Series

Returned = TypeVar("Returned")

WRITE_EVERY_S = 1.0
MOST_OPEN = 256  # spans waiting for the device; more means that it is never asked, and the oldest is let go


class Probe:
    """Time calls and write what was seen to `path`; vLLM calls from one thread."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._series: dict[str, Series] = {}
        self._open: deque[tuple[str, Any, Any]] = deque(maxlen=MOST_OPEN)
        self._written_at_s = 0.0

    def timed(self, kind: str, call: Callable[..., Returned]) -> Callable[..., Returned]:
        """Return `call` with its spans taken in as `kind`."""

        @wraps(call)
        def measured(*arguments: Any, **named: Any) -> Returned:
            start = self._clock.mark()
            result = call(*arguments, **named)
            end = self._clock.mark()
            if start is not None and end is not None:
                self._take_in(kind, start, end)
            return result

        return measured

    def told(self) -> dict[str, Any]:
        """Return what was seen so far, spans still open on the device left out."""
        self._settle()
        steps = {kind: series.told() for kind, series in sorted(self._series.items())}
        return {"clock": self._clock.name, "pid": os.getpid(), "steps": steps}

    def write(self) -> None:
        """Replace the file as a whole; does nothing before the first span."""
        if not self._series:
            return
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        beside.write_text(json.dumps(self.told()) + "\n", encoding="utf-8")
        beside.replace(self._path)

    def _take_in(self, kind: str, start: Any, end: Any) -> None:
        self._open.append((kind, start, end))
        self._settle()
        now_s = time.monotonic()
        if now_s - self._written_at_s > WRITE_EVERY_S:
            self._written_at_s = now_s
            self.write()

    def _settle(self) -> None:
        while self._open:
            kind, start, end = self._open[0]
            span_ms = self._clock.span_ms(start, end)
            if span_ms is None:
                return
            self._open.popleft()
            self._series.setdefault(kind, Series()).add(span_ms)


def watch(path: str, *, on_gpu: bool) -> None:
    """Time every step and draft of this process's vLLM into the file at `path`; a second call changes nothing.

    No GPU is asked for anything before the first step: the processes that vLLM forks from this one could not use it.
    Raises `UnknownVllm` where the methods to wrap are not there.
    """
    require(STEPTIME)
    probe = Probe(Path(path), _clock(on_gpu=on_gpu))
    for place in _places():
        module, _, name = place.partition(":")
        owner, _, method = name.partition(".")
        _wrap(getattr(importlib.import_module(module), owner), method, probe)
    atexit.register(probe.write)


def _places() -> list[str]:
    found = [[place for place in need.places if installed().find(place)] for need in STEPTIME.needs]
    return [places[0] for places in found]


def _wrap(owner: type, method: str, probe: Probe) -> None:
    plain = getattr(owner, method)
    if not hasattr(plain, "paddock_steptime"):
        measured = probe.timed(method, plain)
        measured.paddock_steptime = True  # type: ignore[attr-defined]  # the mark of a method that is wrapped already
        setattr(owner, method, measured)


def _clock(*, on_gpu: bool) -> Clock:
    if not on_gpu:
        return HostClock()
    import torch

    return CudaClock(torch.cuda)
