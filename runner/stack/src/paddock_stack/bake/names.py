"""Know how tensors of a Gemma 4 are called, and give layers new numbers in names and in quantisation patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paddock_stack.refusals import Refused

# Where the language model sits: in a multimodal checkpoint, in an old one, in a text-only one. Most telling first.
PREFIXES = ("model.language_model.", "language_model.model.", "model.")
HEADS = ("lm_head", "language_model.lm_head")
LAYER_NAME = re.compile(
    r"^((?:model\.language_model|language_model\.model|language_model|model)\.layers)\.(\d+)(?=\.|$)"
)
FLOAT_FORM, PACKED_FORM = "weight", ("weight_packed", "weight_scale", "weight_shape")


@dataclass(frozen=True)
class Names:
    """Hold the prefix of the language model's tensors and the name of its head."""

    prefix: str
    head: str

    @property
    def embedding(self) -> str:
        """Return the name of the token embedding, without `.weight`."""
        return f"{self.prefix}embed_tokens"

    @property
    def per_layer_table(self) -> str:
        """Return the name of the table that holds every layer's own embeddings side by side, layer by layer."""
        return f"{self.prefix}embed_tokens_per_layer"

    @property
    def per_layer_projection(self) -> str:
        """Return the name of the projection whose rows belong to one layer after the other."""
        return f"{self.prefix}per_layer_model_projection"

    def layer(self, index: int) -> str:
        """Return the prefix of layer `index`."""
        return f"{self.prefix}layers.{index}."


def find_names(tensors: Iterable[str]) -> Names:
    """Return the names that fit `tensors`; raise `Refused` where no language model is among them."""
    modules = {module_of(name) for name in tensors}
    for prefix in PREFIXES:
        if f"{prefix}embed_tokens" in modules:
            return Names(prefix, next((head for head in HEADS if head in modules), HEADS[0]))
    raise Refused("the weights hold no language model: there is no embed_tokens under a name known here")


def module_of(tensor: str) -> str:
    """Return the name of the module that a tensor belongs to."""
    return tensor.rpartition(".")[0]


def layer_of(name: str) -> int | None:
    """Return the language model's layer that `name` belongs to, or None."""
    found = LAYER_NAME.match(name)
    return int(found[2]) if found else None


def renumbered(name: str, new_numbers: Mapping[int, int]) -> str | None:
    """Return `name` with its layer's new number, None where the layer is gone; other names stay as they are."""
    old = layer_of(name)
    if old is None:
        return name
    return LAYER_NAME.sub(rf"\g<1>.{new_numbers[old]}", name) if old in new_numbers else None


def matches(module: str, pattern: str) -> bool:
    """Return whether a compressed-tensors pattern (`re:…` from the start, or the whole name) means `module`."""
    return re.match(pattern[3:], module) is not None if pattern.startswith("re:") else pattern == module


def renumbered_patterns(patterns: list[str], modules: Iterable[str], new_numbers: Mapping[int, int]) -> list[str]:
    """Return `patterns` so that they mean the same modules after the layers have got new numbers.

    A regular expression that speaks of single layers can't be renumbered; the names it means take its place.
    """
    kept: dict[str, None] = {}
    moved = {module: renumbered(module, new_numbers) for module in modules}
    after = {name for name in moved.values() if name is not None}
    for pattern in patterns:
        if not pattern.startswith("re:"):
            name = renumbered(pattern, new_numbers)
            kept |= {name: None} if name is not None else {}
            continue
        meant = {name for module, name in moved.items() if name is not None and matches(module, pattern)}
        same = meant == {name for name in after if matches(name, pattern)}
        kept |= {pattern: None} if same else dict.fromkeys(sorted(meant))
    return list(kept)
