"""An agent's plate: five strokes from a hash of the handle. Decoration, never the only name."""

import hashlib

_COLUMNS = (6, 10, 14, 18, 22)


def plate(handle: str) -> str:
    """Draw the path of a handle's plate on a 28 × 28 field."""
    digest = hashlib.sha256(handle.encode()).digest()
    strokes = (f"M{x} {4 + digest[i] % 8}V{16 + digest[i + 8] % 8}" for i, x in enumerate(_COLUMNS))
    return "".join(strokes)
