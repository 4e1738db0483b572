"""Keep a file's terms as a compact blob: xorb digest, first chunk, end chunk, length; 44 bytes each."""

import struct
from collections.abc import Sequence

from storage.xet.hashes import Digest
from storage.xet.shards import Term

_TERM = struct.Struct("<32sIII")
TERM_BYTES = _TERM.size


def pack_terms(terms: Sequence[Term]) -> bytes:
    """Return the stored form of a file's terms."""
    return b"".join(_TERM.pack(term.xorb, term.start, term.end, term.length) for term in terms)


def parse_terms(raw: bytes) -> list[Term]:
    """Read the stored form; it is our own, so a damaged one is our own bug."""
    return [Term(Digest(xorb), start, end, length) for xorb, start, end, length in _TERM.iter_unpack(raw)]
