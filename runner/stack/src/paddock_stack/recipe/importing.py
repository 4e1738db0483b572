"""Turn a public submission's manifest into a profile, lever by lever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_stack.profiles.catalogue import laid_over
from paddock_stack.recipe.catalogue import Fate, find_lever
from paddock_stack.refusals import Refused

OFF = ("", "0", "false", "False")
_NUMBERS = {
    "MAX_MODEL_LEN": "max-model-len",
    "MAX_NUM_SEQS": "max-num-seqs",
    "MAX_NUM_BATCHED_TOKENS": "max-num-batched-tokens",
}
_WARM_UP = {"WARMUP_NUM_PROMPTS": "prompts", "WARMUP_MAX_TOKENS": "max_tokens", "WARMUP_SEED": "seed"}
_TEXTS = {"GENERATION_CONFIG": "generation-config", "PERFORMANCE_MODE": "performance-mode"}


class BadRecipe(Refused):
    """The manifest can't be read, or a variable of it holds what it can't."""


@dataclass(frozen=True)
class Row:
    """One variable of the manifest and what became of it."""

    name: str
    value: str
    fate: str
    how: str


@dataclass(frozen=True)
class Imported:
    """The profile, as tables for a TOML file, and a row a variable."""

    profile: dict[str, Any]
    rows: tuple[Row, ...]


def import_manifest(path: Path) -> Imported:
    """Return the profile that does on current vLLM what the manifest at `path` did.

    Raises:
        BadRecipe: it is no manifest, or a value isn't of its variable's kind.
    """
    try:
        told = json.loads(path.read_bytes())
        env = {str(name): str(value) for name, value in told.get("env", {}).items()}
    except (OSError, ValueError, AttributeError) as fault:
        raise BadRecipe(f"{path} is no manifest: {fault}") from fault
    rows = tuple(_row(name, value) for name, value in sorted(env.items()))
    taken = {row.name: row.value for row in rows if row.fate not in (Fate.REFUSED, Fate.NOTHING, "off", "unknown")}
    return Imported(_profile(told, taken), rows)


def _row(name: str, value: str) -> Row:
    lever = find_lever(name)
    if lever is None:
        return Row(
            name, value, "unknown", "no lever of the recipe is called so; look at what its serve.py does with it"
        )
    if value in OFF:
        return Row(name, value, "off", "it was not turned on")
    return Row(name, value, lever.fate.value, lever.how)


def _profile(told: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "extends": "common",
        "summary": f"Imported from the public submission {told.get('name', 'without a name')}.",
        "answers": "model-changing",
        "warning": "imported: nothing of it was measured here",
        "weights": {"uri": _weights(told, env)},
        "levers": {"attention": "native", "fused_argmax": "FUSED_SPARSE_ARGMAX" in env},
    }
    for part in (_pruning(env), _window(env), _centroids(env), _speculation(env), _engine(env), _warm_up(env)):
        made = laid_over(made, part)
    if "WEIGHTS_SHA256" in env:
        made["weights"]["sha256"] = env["WEIGHTS_SHA256"]
    if "PYTORCH_CUDA_ALLOC_CONF" in env:
        made["env"] = {"PYTORCH_CUDA_ALLOC_CONF": env["PYTORCH_CUDA_ALLOC_CONF"]}
    return made


def _weights(told: Mapping[str, Any], env: Mapping[str, str]) -> str:
    named = (env.get("WEIGHTS_BUCKET"), env.get("SERVE_MODEL_OVERRIDE"), env.get("MODEL_ID"), told.get("model_id"))
    return str(next((uri for uri in named if uri), ""))


def _pruning(env: Mapping[str, str]) -> dict[str, Any]:
    wanted = {"LM_HEAD_PRUNE", "LM_HEAD_KEEPSET_BUCKET"} & set(env)
    return {"keepset": "keepset.json", "bake": [{"step": "prune-head"}]} if wanted else {}


def _window(env: Mapping[str, str]) -> dict[str, Any]:
    text = _json("HF_OVERRIDES", env).get("text_config", {})
    if "SLIDING_WINDOW" in env:
        return {"window": _number("SLIDING_WINDOW", env)}
    return {"window": text["sliding_window"]} if "sliding_window" in text else {}


def _centroids(env: Mapping[str, str]) -> dict[str, Any]:
    return {"centroid_top_k": _number("CENTROID_TOP_K", env)} if "CENTROID_TOP_K" in env else {}


def _speculation(env: Mapping[str, str]) -> dict[str, Any]:
    told = _json("SPECULATIVE_CONFIG", env)
    if not told:
        return {}
    if told.get("method", "mtp") != "mtp":
        raise BadRecipe(f"SPECULATIVE_CONFIG asks for {told['method']!r}, but profiles draft with mtp only")
    drafter = {"uri": env.get("DRAFTER_BUCKET") or str(told.get("model", ""))}
    if "DRAFTER_SHA256" in env:
        drafter["sha256"] = env["DRAFTER_SHA256"]
    tokens = told.get("num_speculative_tokens", 0)
    return {"speculation": {"tokens": tokens, "local_argmax": True, "drafter": drafter}}


def _engine(env: Mapping[str, str]) -> dict[str, Any]:
    engine: dict[str, Any] = {option: _number(name, env) for name, option in _NUMBERS.items() if name in env}
    engine |= {option: env[name] for name, option in _TEXTS.items() if name in env}
    if "OVERRIDE_GENERATION_CONFIG" in env:
        engine["override-generation-config"] = _json("OVERRIDE_GENERATION_CONFIG", env)
    if "GPU_MEMORY_UTILIZATION" in env:
        engine["gpu-memory-utilization"] = float(env["GPU_MEMORY_UTILIZATION"])
    return {"engine": engine} if engine else {}


def _warm_up(env: Mapping[str, str]) -> dict[str, Any]:
    settings = {key: _number(name, env) for name, key in _WARM_UP.items() if name in env}
    if "max_tokens" in settings:
        settings["max_tokens"] = max(16, settings["max_tokens"])
    return {"warm_up": settings} if settings else {}


def _number(name: str, env: Mapping[str, str]) -> int:
    try:
        return int(env[name])
    except ValueError as fault:
        raise BadRecipe(f"{name} must be a whole number, not {env[name]!r}") from fault


def _json(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    try:
        told = json.loads(env.get(name) or "{}")
    except ValueError as fault:
        raise BadRecipe(f"{name} is no JSON: {fault}") from fault
    if not isinstance(told, dict):
        raise BadRecipe(f"{name} must be an object")
    return told
