"""Tell on stderr how far a bake is, in bytes and time left."""

from __future__ import annotations

import sys
import time
from typing import TextIO

SECONDS_ON_TERMINAL, SECONDS_IN_LOG = 0.3, 5.0


class Progress:
    """Count bytes written of `total`; print at most a few lines a second on a terminal, one in five seconds else."""

    def __init__(self, total: int, out: TextIO | None = None) -> None:
        self._total, self._done = total, 0
        self._out = sys.stderr if out is None else out
        self._terminal = self._out.isatty()
        self._started = self._printed = time.monotonic()

    def add(self, count: int, what: str) -> None:
        """Count `count` more bytes, of the file `what`."""
        self._done += count
        pause = SECONDS_ON_TERMINAL if self._terminal else SECONDS_IN_LOG
        if time.monotonic() - self._printed >= pause:
            self._print(what)

    def finish(self) -> None:
        """Print the last line, where any has been printed."""
        if self._printed != self._started:
            self._print("done")
            self._out.write("\n" if self._terminal else "")

    def _print(self, what: str) -> None:
        self._printed = time.monotonic()
        line = line_of(self._done, self._total, self._printed - self._started, what)
        self._out.write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")
        self._out.flush()


def line_of(done: int, total: int, seconds: float, what: str) -> str:
    """Return the line that says how far a bake is after `seconds`."""
    rate = done / seconds if seconds > 0 else 0.0
    left = f"{(total - done) / rate:.0f} s left" if rate else "…"
    share = 100 * done / total if total else 100.0
    return f"{what}: {done / 1e9:.2f} of {total / 1e9:.2f} GB, {share:.0f} %, {rate / 1e6:.0f} MB/s, {left}"
