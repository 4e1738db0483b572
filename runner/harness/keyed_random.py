"""A random source whose whole stream follows from a key, and whose past and future nobody can work out without it."""

from __future__ import annotations

import hashlib
import hmac
import random


class KeyedRandom(random.Random):
    """Python's `Random` over an HMAC-SHA256 counter stream.

    The usual Mersenne Twister can be reconstructed from enough of its output; prompts are output, and a server under
    test sees them.
    """

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(key).digest()  # HMAC itself takes b"k" and b"k\0" for one key
        self._counter = 0
        self._pool = 0
        self._pool_bits = 0
        super().__init__()

    def seed(self, *_: object, **__: object) -> None:
        """Do nothing: the key given at the start decides the stream."""

    def getrandbits(self, k: int, /) -> int:
        """Return the next `k` bits of the stream."""
        while self._pool_bits < k:
            block = hmac.digest(self._key, self._counter.to_bytes(8), hashlib.sha256)
            self._counter += 1
            self._pool = (self._pool << 256) | int.from_bytes(block)
            self._pool_bits += 256
        self._pool_bits -= k
        taken = self._pool >> self._pool_bits
        self._pool &= (1 << self._pool_bits) - 1
        return taken

    def random(self) -> float:
        """Return a float in [0, 1) from the next 53 bits."""
        return self.getrandbits(53) / (1 << 53)
