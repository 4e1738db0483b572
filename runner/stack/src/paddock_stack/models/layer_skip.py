"""Leave out layers of a served model, to judge a removal before anything is baked.

`text_config.skip_layers` lists the layers by index. What is served then equals, token for token, the checkpoint that
`paddock-stack bake drop-layers` makes of the same indices, but still holds the weights and caches of all layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddock_stack.refusals import Refused

KEY = "skip_layers"


class SkipRefused(Refused):
    """Layers were to be left out that others depend on; no weight was loaded."""


def find_skipped(text_config: Any) -> tuple[int, ...]:
    """Return the layers to leave out, ascending; raise `SkipRefused` where the rest could not stand alone."""
    skipped = tuple(sorted(getattr(text_config, KEY, None) or ()))
    kinds: Sequence[str] = text_config.layer_types
    unknown = [index for index in skipped if not 0 <= index < len(kinds)]
    if unknown:
        raise SkipRefused(f"{KEY} names layer {unknown[0]} of a model of {len(kinds)} layers")
    for index in skipped:
        if index in kv_sources(text_config):
            raise SkipRefused(f"layer {index} holds the keys and values that later layers share; it cannot be left out")
    if len(kinds) - 1 in skipped:
        raise SkipRefused("the last layer must stay: a baked checkpoint would make another one the last")
    return skipped


def kv_sources(text_config: Any) -> set[int]:
    """Return the layers whose keys and values are shared: the last of each kind before the sharing ones."""
    kinds: Sequence[str] = text_config.layer_types
    own = kinds[: len(kinds) - (getattr(text_config, "num_kv_shared_layers", 0) or 0)]
    shared = set(kinds[len(own) :])
    return {max(index for index, kind in enumerate(own) if kind == each) for each in shared}


def pass_through(positions: Any, hidden_states: Any, residual: Any, **rest: Any) -> tuple[Any, Any]:
    """Stand in for a decoder layer's forward: give back `hidden_states` [num_tokens, hidden_size] unchanged."""
    del positions, rest
    return hidden_states, residual
