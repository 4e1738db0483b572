"""Turn a public submission's manifest into a profile, lever by lever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_stack.profiles.catalogue import laid_over
from paddock_stack.recipe.catalogue import Fate
from paddock_stack.recipe.losses import LEAST_WARM_UP_TOKENS, WEIGHTS, losses
from paddock_stack.recipe.rows import Row, row_of
from paddock_stack.recipe.values import BadRecipe, inner, number, share, table, whole

_NUMBERS = {
    "MAX_MODEL_LEN": "max-model-len",
    "MAX_NUM_SEQS": "max-num-seqs",
    "MAX_NUM_BATCHED_TOKENS": "max-num-batched-tokens",
}
KEEPSET = "keepset.json"
_WARM_UP = {"WARMUP_NUM_PROMPTS": "prompts", "WARMUP_MAX_TOKENS": "max_tokens", "WARMUP_SEED": "seed"}
_TEXTS = {"GENERATION_CONFIG": "generation-config", "PERFORMANCE_MODE": "performance-mode"}


@dataclass(frozen=True)
class Imported:
    """The profile, as tables for a TOML file, and a row a variable and a key that the profile doesn't take over."""

    profile: dict[str, Any]
    rows: tuple[Row, ...]


def import_manifest(path: Path) -> Imported:
    """Return the profile that does on current vLLM what the manifest at `path` did.

    Raises:
        BadRecipe: it is no manifest, or a value isn't of its variable's kind.
    """
    try:
        told = json.loads(path.read_bytes())
        json.dumps(told, ensure_ascii=False).encode()  # fails for half a character, which no file can hold
        env = {str(name): str(value) for name, value in told.get("env", {}).items()}
    except (OSError, ValueError, AttributeError, RecursionError) as fault:
        raise BadRecipe(f"{path} is no manifest: {fault}") from fault
    rows = {name: row_of(name, value) for name, value in env.items()}
    off = {row.name: row.value for row in rows.values() if row.fate == "off"}
    untaken = (Fate.REFUSED, Fate.NOTHING, "off", "unknown")
    taken = {row.name: row.value for row in rows.values() if row.fate not in untaken}
    profile = _profile(told, taken, off)
    rows |= {row.name: row for row in losses(taken, off)}
    return Imported(profile, tuple(rows[name] for name in sorted(rows)))


def _profile(told: Mapping[str, Any], env: Mapping[str, str], off: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "extends": "common",
        "summary": f"Imported from the public submission {told.get('name', 'without a name')}.",
        "answers": "model-changing",
        "warning": "imported: nothing of it was measured here",
        "weights": {"uri": _weights(told, env)},
        "levers": {"attention": "native", "fused_argmax": "FUSED_SPARSE_ARGMAX" in env},
    }
    for part in (_pruning(env, off), _window(env), _centroids(env), _speculation(env), _engine(env), _warm_up(env)):
        made = laid_over(made, part)
    if "WEIGHTS_SHA256" in env:
        made["weights"]["sha256"] = env["WEIGHTS_SHA256"]
    if "PYTORCH_CUDA_ALLOC_CONF" in env:
        made["env"] = {"PYTORCH_CUDA_ALLOC_CONF": env["PYTORCH_CUDA_ALLOC_CONF"]}
    return made


def _weights(told: Mapping[str, Any], env: Mapping[str, str]) -> str:
    named = (*(env.get(name) for name in WEIGHTS), told.get("model_id"))
    return str(next((uri for uri in named if uri), ""))


def _pruning(env: Mapping[str, str], off: Mapping[str, str]) -> dict[str, Any]:
    """Return the step that cuts the head, and where PCK04_KEEPSET says that it was cut before, of what rows."""
    is_cut = "LM_HEAD_PRUNE" in env or ("LM_HEAD_KEEPSET_BUCKET" in env and "LM_HEAD_PRUNE" not in off)
    was_cut = "PCK04_KEEPSET" in env
    if not (is_cut or was_cut):
        return {}
    of = {"of": "pck04.json" if is_cut else KEEPSET} if was_cut else {}
    return {"keepset": KEEPSET, "bake": [{"step": "prune-head", **of}]}


def _window(env: Mapping[str, str]) -> dict[str, Any]:
    text = inner("HF_OVERRIDES.text_config", table("HF_OVERRIDES", env).get("text_config", {}))
    window = whole("HF_OVERRIDES.text_config.sliding_window", text.get("sliding_window", 0))
    if "SLIDING_WINDOW" in env:
        window = number("SLIDING_WINDOW", env)
    return {"window": window} if window else {}


def _centroids(env: Mapping[str, str]) -> dict[str, Any]:
    return {"centroid_top_k": number("CENTROID_TOP_K", env)} if "CENTROID_TOP_K" in env else {}


def _speculation(env: Mapping[str, str]) -> dict[str, Any]:
    told = table("SPECULATIVE_CONFIG", env)
    if not told:
        return {}
    if told.get("method", "mtp") != "mtp":
        raise BadRecipe(f"SPECULATIVE_CONFIG asks for {told['method']!r}, but profiles draft with mtp only")
    drafter = {"uri": env.get("DRAFTER_BUCKET") or str(told.get("model", ""))}
    if "DRAFTER_SHA256" in env:
        drafter["sha256"] = env["DRAFTER_SHA256"]
    tokens = whole("SPECULATIVE_CONFIG.num_speculative_tokens", told.get("num_speculative_tokens", 0))
    return {"speculation": {"tokens": tokens, "local_argmax": True, "drafter": drafter}}


def _engine(env: Mapping[str, str]) -> dict[str, Any]:
    engine: dict[str, Any] = {option: number(name, env) for name, option in _NUMBERS.items() if name in env}
    engine |= {option: env[name] for name, option in _TEXTS.items() if name in env}
    if "OVERRIDE_GENERATION_CONFIG" in env:
        engine["override-generation-config"] = _written("OVERRIDE_GENERATION_CONFIG", env)
    if "GPU_MEMORY_UTILIZATION" in env:
        engine["gpu-memory-utilization"] = share("GPU_MEMORY_UTILIZATION", env)
    return {"engine": engine} if engine else {}


def _warm_up(env: Mapping[str, str]) -> dict[str, Any]:
    settings = {key: number(name, env) for name, key in _WARM_UP.items() if name in env}
    if "max_tokens" in settings:
        settings["max_tokens"] = max(LEAST_WARM_UP_TOKENS, settings["max_tokens"])
    return {"warm_up": settings} if settings else {}


def _written(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    told = table(name, env)
    if any(value is None for value in told.values()):
        raise BadRecipe(f"{name} holds null, which a profile can't say; leave the key out")
    return told
