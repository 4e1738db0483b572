"""Cut what the server itself writes into chunks and xorbs.

Cuts are fixed at 64 KiB. Content-defined cuts exist so that an insertion early in a large file moves few
chunks; what the server writes (posts, verdicts, logs, copies of run files) is small or new as a whole, and
any cut gives a valid file: readers follow the terms and never cut again.
"""

from collections.abc import Iterable, Iterator

CUT_BYTES = 65_536
XORB_CUTS = 512
"""Chunks per server-written xorb: 32 MiB of data, half of what a xorb may hold."""


def cut(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Re-cut a stream of pieces of any length into chunks of `CUT_BYTES`; only the last is shorter."""
    rest = bytearray()
    for piece in pieces:
        rest += piece
        while len(rest) >= CUT_BYTES:
            yield bytes(rest[:CUT_BYTES])
            del rest[:CUT_BYTES]
    if rest:
        yield bytes(rest)


def batch(chunks: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Gather chunks into lists of at most `XORB_CUTS`, one list per xorb."""
    gathered: list[bytes] = []
    for chunk in chunks:
        gathered.append(chunk)
        if len(gathered) == XORB_CUTS:
            yield gathered
            gathered = []
    if gathered:
        yield gathered
