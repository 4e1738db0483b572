"""Take the time of calls whose work may still be running on a device when they return."""

from __future__ import annotations

import time
from typing import Any, Protocol


class Clock(Protocol):
    """Marks moments on the device's own line of work; a span between two marks is known once both are over."""

    name: str

    def mark(self) -> Any:
        """Mark this moment, or return None where none can be marked."""

    def span_ms(self, start: Any, end: Any) -> float | None:
        """Return the milliseconds from `start` to `end`, None while `end` lies ahead."""


class HostClock:
    """The process's own clock: on the CPU, a call's work is over when it returns."""

    name = "perf_counter"

    def mark(self) -> float:
        """Return now, in seconds."""
        return time.perf_counter()

    def span_ms(self, start: float, end: float) -> float:
        """Return the milliseconds between two marks."""
        return (end - start) * 1000


class CudaClock:
    """Events on the current CUDA stream; nothing waits for them, and those of a span that is told serve again."""

    name = "cuda_event"

    def __init__(self, cuda: Any) -> None:
        """Take `torch.cuda`."""
        self._cuda = cuda
        self._spare: list[Any] = []

    def mark(self) -> Any:
        """Record an event; none while a graph is being captured, which would take the event into the graph."""
        if self._cuda.is_current_stream_capturing():
            return None
        event = self._spare.pop() if self._spare else self._cuda.Event(enable_timing=True)
        event.record()
        return event

    def span_ms(self, start: Any, end: Any) -> float | None:
        """Return the milliseconds between two events, None while the device has not reached the second.

        Once they are told the two events are not the caller's any more.
        """
        if not end.query():
            return None
        self._spare += (start, end)
        return float(start.elapsed_time(end))
