"""A server's output, kept in bounded memory: its first and its last bytes, and how many lay between."""

import threading
from collections import deque
from typing import IO

_PIECE_BYTES = 1 << 16
_GAP_BYTES = 60


class Captured:
    """Reads a pipe to its end in a thread, so that the writer never blocks and never fills our disk."""

    def __init__(self, pipe: IO[bytes], *, most_bytes: int) -> None:
        self._pipe = pipe
        self._head_room = most_bytes // 4
        self._tail_room = most_bytes - self._head_room - _GAP_BYTES
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self._omitted = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, name="captured-output", daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return what is kept so far as text, at most `most_bytes` of UTF-8; what isn't UTF-8 becomes `?`."""
        with self._lock:
            head, tail, omitted = bytes(self._head), b"".join(self._tail), self._omitted
        gap = f"\n[{omitted} bytes omitted]\n".encode() if omitted else b""
        return (head + gap + tail).decode("utf-8", "replace").replace("\ufffd", "?")  # three bytes for one, otherwise

    def last_lines(self, count: int) -> str:
        """Return the last `count` lines that aren't blank, each of at most 300 characters."""
        lines = [line.strip()[:300] for line in self.text().splitlines() if line.strip()]
        return "".join(char for char in " | ".join(lines[-count:]) if char.isprintable())

    def finish(self, within_s: float) -> None:
        """Wait for the end of the output once its writers are gone."""
        self._thread.join(within_s)

    def _read(self) -> None:
        with self._pipe:
            while piece := self._pipe.read1(_PIECE_BYTES):  # type: ignore[attr-defined]  # a BufferedReader
                with self._lock:
                    self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        room = self._head_room - len(self._head)
        self._head += piece[:room] if room > 0 else b""
        rest = piece[max(room, 0) :]
        if rest:
            self._tail.append(rest)
            self._tail_bytes += len(rest)
        while self._tail_bytes > self._tail_room:
            excess = self._tail_bytes - self._tail_room
            oldest = self._tail.popleft()
            if len(oldest) > excess:
                self._tail.appendleft(oldest[excess:])
            dropped = min(len(oldest), excess)
            self._tail_bytes -= dropped
            self._omitted += dropped
