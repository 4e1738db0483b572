"""Turn a profile into vLLM's command line and environment.

vLLM keeps compiled graphs under a key that doesn't see PADDOCK_* variables: two ways to serve once shared a key, and
the second would have run the first one's graphs. So every lever's switch also goes into `--additional-config`, which is
part of the key, and with them the digest of our sources: a graph traced through other code of ours is another graph.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_stack import VERSION, sources
from paddock_stack.plugin import switches
from paddock_stack.profiles.schema import Attention, Levers, Profile

GATE = "paddock_stack.launcher.gate.Gate"
_BACKENDS = {Attention.TWO_D: "CUSTOM", Attention.FIXED_SPLIT: "CUSTOM", Attention.NATIVE: "TRITON_ATTN"}
_CUSTOM = {Attention.FIXED_SPLIT: "fixed_split"}  # what the plugin puts behind that name; the 2D backend for all others
_QUIET = {"VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


@dataclass(frozen=True)
class Served:
    """What is served and where: the prepared folders and the address."""

    model: Path
    drafter: Path | None
    name: str
    host: str
    port: int


def switches_of(levers: Levers) -> dict[str, str]:
    """Return the plugin's switches for `levers`, every one said."""
    return {
        switches.FUSED_ARGMAX: str(int(levers.fused_argmax)),
        switches.SKINNY: str(int(levers.skinny)),
        switches.PERSISTENT_NORMS: str(int(levers.persistent_norms)),
        switches.ATTENTION: _CUSTOM.get(levers.attention, "2d"),
    }


def additional_config(profile: Profile) -> dict[str, Any]:
    """Return what vLLM's configuration hash must see beside vLLM's own options."""
    levers = {**switches_of(profile.levers), "attention": profile.levers.attention.value}
    return {"paddock_stack": {"version": VERSION, "sources": sources.sha256(), **levers}}


def options(profile: Profile, drafter: Path | None) -> dict[str, Any]:
    """Return vLLM's options by name, without model and address."""
    made: dict[str, Any] = {**profile.engine, "additional-config": additional_config(profile)}
    if profile.levers.attention in _BACKENDS:
        made["attention-backend"] = _BACKENDS[profile.levers.attention]
    if profile.speculation.tokens:
        made["speculative-config"] = {
            "method": "mtp",
            "model": str(drafter),
            "num_speculative_tokens": profile.speculation.tokens,
            **({"use_local_argmax_reduction": True} if profile.speculation.local_argmax else {}),
        }
    return made


def arguments(profile: Profile, served: Served) -> list[str]:
    """Return the words after `python -m vllm.entrypoints.openai.api_server`."""
    place = {"model": str(served.model), "served-model-name": served.name, "host": served.host, "port": served.port}
    every = {**place, **options(profile, served.drafter), "middleware": GATE}
    return [word for name, value in every.items() for word in _words(name, value)]


def environment(profile: Profile, inherited: Mapping[str, str], scratch: Path) -> dict[str, str]:
    """Return vLLM's environment: the inherited one, caches in `scratch` where none are named, then the profile's."""
    caches = {
        "HOME": scratch,
        "VLLM_CACHE_ROOT": scratch / "vllm-cache",
        "VLLM_CONFIG_ROOT": scratch / "vllm-config",
        "TORCHINDUCTOR_CACHE_DIR": scratch / "inductor",
        "NUMBA_CACHE_DIR": scratch / "numba",
        "XDG_CACHE_HOME": scratch / "cache",
    }
    said = {name: str(folder) for name, folder in caches.items()}
    # All weights are in folders by now; a library that asks the Hub all the same would wait for its timeout.
    return {**said, **_QUIET, "HF_HUB_OFFLINE": "1", **inherited, **profile.env, **switches_of(profile.levers)}


def config_hash(profile: Profile) -> str:
    """Return the hex SHA-256 of all that a profile decides about vLLM, weights apart."""
    said = {"options": options(profile, None), "env": {**profile.env, **switches_of(profile.levers)}}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _words(name: str, value: Any) -> list[str]:
    if value is True:
        return [f"--{name}"]
    if value is False:
        return [f"--no-{name}"]
    if isinstance(value, Mapping):
        return [f"--{name}", json.dumps(value)]
    if isinstance(value, list):
        return [f"--{name}", *map(str, value)]
    return [f"--{name}", str(value)]
