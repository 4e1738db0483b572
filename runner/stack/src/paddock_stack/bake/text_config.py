"""Read and rewrite the part of config.json that describes the language model.

A text-only checkpoint has it at the top, a multimodal one under `text_config`. Head sizes of the full-attention layers
come in two forms: `per_layer_config` keyed by layer, zero-padded ("05", "11"), as transformers ≥ 5.16 writes them, and
`global_head_dim` before that.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paddock_stack.refusals import Refused

Config = dict[str, Any]
SLIDING, FULL = "sliding_attention", "full_attention"


@dataclass(frozen=True)
class Layer:
    """Say what the configuration fixes about one layer."""

    kind: str
    head_dim: int
    kv_heads: int
    is_sharer: bool
    intermediate: int


def text_part(config: Config) -> Config:
    """Return the mutable part of `config` that describes the language model."""
    part = config.get("text_config", config)
    if not isinstance(part, dict) or not str(part.get("model_type", "")).startswith("gemma4"):
        raise Refused("config.json describes no Gemma 4 language model")
    return part


def is_multimodal(config: Mapping[str, Any]) -> bool:
    """Return whether the language model is one part among towers."""
    return any(config.get(name) is not None for name in ("vision_config", "audio_config"))


def number(text: Mapping[str, Any], key: str, default: int | None = None) -> int:
    """Return the whole number ≥ 0 under `key`; raise `Refused` where there is none."""
    value = text.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Refused(f"config.json has {value!r} for {key}, where a whole number belongs")
    return value


def kinds(text: Mapping[str, Any]) -> list[str]:
    """Return the attention kind of each layer; raise `Refused` where they don't fit the number of layers."""
    given = text.get("layer_types")
    count = number(text, "num_hidden_layers")
    if not isinstance(given, list) or len(given) != count:
        raise Refused(f"config.json has {count} layers but layer_types for {len(given or [])}")
    if not set(given) <= {SLIDING, FULL}:
        raise Refused(f"config.json has layer_types other than {SLIDING} and {FULL}")
    return list(given)


def first_shared(text: Mapping[str, Any]) -> int:
    """Return the first layer that reads another's keys and values; the number of layers where none does."""
    count, shared = number(text, "num_hidden_layers"), number(text, "num_kv_shared_layers", 0)
    if not (shared < count):
        raise Refused(f"config.json shares the keys and values of {shared} layers but has {count}")
    return count - shared


def sources(text: Mapping[str, Any]) -> dict[str, int]:
    """Return, for each attention kind, the last layer before the shared region: sharers and drafters read that one."""
    return {kind: index for index, kind in enumerate(kinds(text)[: first_shared(text)])}


def layers(text: Mapping[str, Any]) -> list[Layer]:
    """Return all layers with their own sizes."""
    overrides = per_layer(text)
    shared_from, width = first_shared(text), number(text, "intermediate_size")
    doubled = bool(text.get("use_double_wide_mlp"))
    return [
        Layer(
            kind,
            number(overrides.get(index, {}), "head_dim", number(text, "head_dim")),
            number(overrides.get(index, {}), "num_key_value_heads", number(text, "num_key_value_heads")),
            index >= shared_from,
            width * 2 if doubled and index >= shared_from else width,
        )
        for index, kind in enumerate(kinds(text))
    ]


def per_layer(text: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    """Return what differs from the global values by layer, whichever form the configuration has."""
    if "per_layer_config" in text:
        return _read_per_layer(text["per_layer_config"] or {})
    values: dict[str, Any] = {"head_dim": text.get("global_head_dim", 512)}  # transformers' default
    if text.get("attention_k_eq_v") and text.get("num_global_key_value_heads") is not None:
        values["num_key_value_heads"] = text["num_global_key_value_heads"]
    return {index: values for index, kind in enumerate(kinds(text)) if kind == FULL}


def _read_per_layer(given: object) -> dict[int, Mapping[str, Any]]:
    found: dict[Any, Any] = given if isinstance(given, dict) else {"": None}
    if not all(str(index).isdecimal() and isinstance(values, dict) for index, values in found.items()):
        raise Refused("config.json has a per_layer_config that doesn't map layer numbers to values")
    return {int(index): values for index, values in found.items()}


def without_layers(config: Config, kept: Sequence[int]) -> Config:
    """Return a copy of `config` that describes the layers `kept`, in their order."""
    made = copy.deepcopy(config)
    text = text_part(made)
    old_kinds, shared_from, overrides = kinds(text), first_shared(text), per_layer(text)
    text["num_hidden_layers"] = len(kept)
    text["layer_types"] = [old_kinds[index] for index in kept]
    text["num_kv_shared_layers"] = sum(index >= shared_from for index in kept)
    if "per_layer_config" in text:
        renumbered = {new: dict(overrides[old]) for new, old in enumerate(kept) if old in overrides}
        digits = len(str(max(renumbered, default=0)))
        text["per_layer_config"] = {str(new).zfill(digits): values for new, values in renumbered.items()}
    return made
