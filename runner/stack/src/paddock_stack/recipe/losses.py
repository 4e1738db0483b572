"""Tell what a manifest says and its profile doesn't: keys dropped, and variables that contradict another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from paddock_stack.recipe.rows import Row
from paddock_stack.recipe.values import inner, number, table

WEIGHTS = ("WEIGHTS_BUCKET", "SERVE_MODEL_OVERRIDE", "MODEL_ID")  # the first that is there holds
LEAST_WARM_UP_TOKENS = 16
_DROPPED, _CONFLICT = "dropped", "conflict"
_SPECULATIVE = ("method", "model", "num_speculative_tokens", "use_local_argmax_reduction")


def losses(env: Mapping[str, str], off: Mapping[str, str]) -> Iterator[Row]:
    """Yield a row for each; one of a variable's own name takes the place of that variable's row.

    `env` holds the variables that a profile takes something of, `off` those that were turned off.
    """
    yield from _overrides(env)
    yield from _speculation(env)
    yield from _verification(env, off)
    yield from _weights(env)
    if env.get("ATTENTION_BACKEND", "TRITON_ATTN") != "TRITON_ATTN":
        how = "levers.attention is native all the same, vLLM's TRITON_ATTN; no other is offered"
        yield Row("ATTENTION_BACKEND", env["ATTENTION_BACKEND"], _DROPPED, how)
    if "LM_HEAD_PRUNE" in off and "LM_HEAD_KEEPSET_BUCKET" in env:
        how = "LM_HEAD_PRUNE is off, so nothing is pruned to it"
        yield Row("LM_HEAD_KEEPSET_BUCKET", env["LM_HEAD_KEEPSET_BUCKET"], _CONFLICT, how)
    if "WARMUP_MAX_TOKENS" in env and number("WARMUP_MAX_TOKENS", env) < LEAST_WARM_UP_TOKENS:
        how = f"warm_up.max_tokens is at least {LEAST_WARM_UP_TOKENS}, so that drafting is warmed up as well"
        yield Row("WARMUP_MAX_TOKENS", env["WARMUP_MAX_TOKENS"], _CONFLICT, how)


def _overrides(env: Mapping[str, str]) -> Iterator[Row]:
    """Yield what HF_OVERRIDES changes beside the window, and its window where SLIDING_WINDOW is another."""
    told = table("HF_OVERRIDES", env)
    text = inner("HF_OVERRIDES.text_config", told.get("text_config", {}))
    keys = {f"HF_OVERRIDES.{key}": value for key, value in told.items() if key != "text_config"}
    keys |= {f"HF_OVERRIDES.text_config.{key}": value for key, value in text.items() if key != "sliding_window"}
    for name, value in keys.items():
        how = "not in the profile: it would reach neither the drafter nor a check; bake what changes the model"
        yield Row(name, _shown(value), _DROPPED, how)
    window = number("SLIDING_WINDOW", env) if "SLIDING_WINDOW" in env else None
    if window is not None and text.get("sliding_window", window) != window:
        how = f"SLIDING_WINDOW holds: window = {window}"
        yield Row("HF_OVERRIDES.text_config.sliding_window", _shown(text["sliding_window"]), _CONFLICT, how)


def _speculation(env: Mapping[str, str]) -> Iterator[Row]:
    told = table("SPECULATIVE_CONFIG", env)
    for name in ("DRAFTER_BUCKET", "DRAFTER_SHA256"):
        if name in env and not told:
            yield Row(name, env[name], _DROPPED, "nothing is drafted without SPECULATIVE_CONFIG")
    for key in (key for key in told if key not in _SPECULATIVE):
        how = "profiles have no key for it; vLLM's default holds"
        yield Row(f"SPECULATIVE_CONFIG.{key}", _shown(told[key]), _DROPPED, how)
    if "DRAFTER_BUCKET" in env and told.get("model", env["DRAFTER_BUCKET"]) != env["DRAFTER_BUCKET"]:
        yield Row("SPECULATIVE_CONFIG.model", _shown(told["model"]), _CONFLICT, "DRAFTER_BUCKET holds")
    if told.get("use_local_argmax_reduction", True) is not True:
        name, value = "SPECULATIVE_CONFIG.use_local_argmax_reduction", _shown(told["use_local_argmax_reduction"])
        yield Row(name, value, _CONFLICT, "local argmax is on all the same: the same tokens, sooner")


def _verification(env: Mapping[str, str], off: Mapping[str, str]) -> Iterator[Row]:
    """Yield that drafts are verified by split attention, where the manifest left it as vLLM 0.22 and 0.23 had it."""
    name = "SPLITKV_VERIFY"
    if "SPECULATIVE_CONFIG" in env and name not in env:
        how = "vLLM 0.33 splits the keys of up to eight verified rows all the same; levers.attention = 2d splits none"
        yield Row(name, off.get(name, ""), _CONFLICT, how)


def _weights(env: Mapping[str, str]) -> Iterator[Row]:
    holding, *others = [name for name in WEIGHTS if name in env] or [""]
    for name in others:
        if env[name] != env[holding]:
            yield Row(name, env[name], _CONFLICT, f"{holding} holds")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
