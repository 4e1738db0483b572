"""Renderings that were made already, by the digest of their text; the oldest unused go first.

In the process and not in a table: a typical post takes two milliseconds, a row would have to be written while a page
is read, and a rendering must never outlive the code that made it.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable

MAX_CHARS = 32_000_000
"""Most characters of HTML that one process keeps."""


class Renderings:
    """HTML by the text it was made of; threads share it."""

    def __init__(self, make: Callable[[str], str], *, max_chars: int = MAX_CHARS) -> None:
        """Begin empty."""
        self._make = make
        self._max_chars = max_chars
        self._held: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()
        self.chars = 0

    def get(self, text: str) -> str:
        """Return the rendering of `text`; two threads that ask at once may both make it."""
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        made = self._make(text)
        with self._lock:
            self._keep(key, made)
        return made

    def _keep(self, key: bytes, made: str) -> None:
        if key in self._held or len(made) > self._max_chars:
            return
        self._held[key] = made
        self.chars += len(made)
        while self.chars > self._max_chars:
            _, dropped = self._held.popitem(last=False)
            self.chars -= len(dropped)
