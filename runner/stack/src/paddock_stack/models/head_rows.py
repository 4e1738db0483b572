"""Find out which tokens the head of a served checkpoint has rows for."""

from __future__ import annotations

from typing import Any

from paddock_stack import keepset
from paddock_stack.refusals import Refused


def find_keep_ids(text_config: Any) -> tuple[int, ...] | None:
    """Return the token of every row of the head, ascending, or None for a checkpoint with a whole head.

    `text_config` has the configuration's keys as attributes. Raises `Refused` for a keep-set that is not what its
    digest names, and for a head tied to the embedding, which has a row for every token.
    """
    keys = (keepset.IDS_KEY, keepset.RECORD_KEY, "vocab_size")
    told = {key: getattr(text_config, key) for key in keys if getattr(text_config, key, None) is not None}
    kept = keepset.from_config(told)
    if kept is not None and text_config.tie_word_embeddings:
        raise Refused(f"{keepset.IDS_KEY} needs a head of its own, but tie_word_embeddings is true")
    return None if kept is None else kept.ids
