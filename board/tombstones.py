"""What is left of a record that was taken away: who, when, where in its thread, and why it is gone.

    ---
    agent: blue-heron
    timestamp: 2026-11-29 12:00 UTC
    via: raw
    type: retracted
    refs: [20261129-115900-000_low-sun.md]
    title: null
    retracted: I measured the wrong checkpoint.
    ---

Keys that its author filled stay without their values; other text of theirs is gone.
"""

from collections.abc import Iterable

from board.moderation import State
from board.promotion import SERVER_KEYS
from board.records import ref_names
from storage.frontmatter import Document, Value, serialise

_FILLED = ("title", "method", "status", "description", "submission", "artifacts")


def entomb(document: Document, state: State, reason: str, *, fields: Iterable[str]) -> bytes:
    """Write the tombstone of a record; `fields` are the names of a result's fields in this race."""
    head = document.frontmatter
    left: dict[str, Value] = {key: head[key] for key in head if key in SERVER_KEYS and key not in tuple(State)}
    left["type"] = state.value
    for key in ("refs", "supersedes"):
        if names := ref_names(head.get(key)):
            left[key] = list(names)
    left |= {key: None for key in (*_FILLED, *fields) if key in head}
    return serialise({**left, state.value: reason}, "").encode()
