"""Refuse, each in one sentence, what would make a start dishonest, slower than it says, or wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from paddock_stack import keepset
from paddock_stack.bake.layout import is_tied
from paddock_stack.bake.text_config import text_part
from paddock_stack.launcher import engine
from paddock_stack.plugin import switches
from paddock_stack.profiles.schema import Attention, Profile
from paddock_stack.refusals import Refused
from paddock_stack.shapes.guard import fault
from paddock_stack.shapes.needs import (
    FIXED_SPLIT_ATTENTION,
    PERSISTENT_NORMS,
    SKINNY_BF16,
    SKINNY_LINEAR,
    TWO_D_ATTENTION,
)
from paddock_stack.shapes.source import Source

LONGEST_SPLIT_QUERY = 8  # vLLM 0.33 splits verified rows up to here: seven drafted tokens and one more
OURS = frozenset(
    {switches.FUSED_ARGMAX, switches.SKINNY, switches.PERSISTENT_NORMS, switches.ATTENTION, switches.STEPTIME}
)
LAUNCHERS = frozenset({"PADDOCK_STACK_CACHE", "PADDOCK_STACK_RECORD"})
OPERATORS = frozenset({"PADDOCK_SERVER_ENV"})  # says which Python serves; by now that is this one
# Of vLLM's own variables, those that change neither what is computed nor how it is told; a profile may set any.
HARMLESS = frozenset(
    {
        *("VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "VLLM_LOGGING_LEVEL", "VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK"),
        *("VLLM_CPU_KVCACHE_SPACE", "VLLM_CPU_OMP_THREADS_BIND", "VLLM_USE_FLASHINFER_SAMPLER", "VLLM_HOST_IP"),
        *("VLLM_WORKER_MULTIPROC_METHOD", "VLLM_RPC_BASE_PATH", "VLLM_ENGINE_READY_TIMEOUT_S", "VLLM_LOGGING_COLOR"),
    }
)
_TWO_D = (TWO_D_ATTENTION, "levers.attention=native serves with vLLM's own choice of kernel")
_SPLIT = (FIXED_SPLIT_ATTENTION, "levers.attention=2d serves with vLLM's 2D kernel")
_ATTENTION = {Attention.TWO_D: (_TWO_D,), Attention.FIXED_SPLIT: (_TWO_D, _SPLIT)}
_NORMS = (PERSISTENT_NORMS, "levers.persistent_norms=false serves without our rule for norms")
_PRODUCTS = tuple((each, "levers.skinny=false serves without our products") for each in (SKINNY_LINEAR, SKINNY_BF16))
_TOWERS = {"image": "vision_config", "audio": "audio_config"}
_TOWER_MODULES = {"image": "vision_tower", "audio": "audio_tower"}


class StartRefused(Refused):
    """A profile, its weights or the environment ask for what this launcher doesn't start; nothing was started."""


def check_profile(profile: Profile) -> None:
    """Raise `StartRefused` where the profile alone is at fault."""
    drafted = profile.speculation.tokens
    if drafted > 0 and not profile.speculation.drafter.uri:
        raise StartRefused(f"{profile.name} drafts {drafted} tokens but names none in speculation.drafter.uri")
    if not (drafted < LONGEST_SPLIT_QUERY) and not profile.speculation.accept_2d_fallback:
        raise StartRefused(
            f"{drafted} drafted tokens are more than vLLM's split attention takes, so verification falls back to 2D; "
            "acknowledge it with speculation.accept_2d_fallback=true"
        )
    for told in engine.faults(profile.engine):
        raise StartRefused(told)
    if any(step["step"] == "prune-head" for step in profile.steps) and not profile.keepset:
        raise StartRefused(f"{profile.name} prunes the head but names no keepset file; name it in `keepset`")
    backend = profile.engine.get("linear-backend", "auto")
    if profile.levers.skinny and backend != "auto":
        raise StartRefused(f"linear-backend={backend} would take the place of our products; set levers.skinny=false")


def check_environment(environ: Mapping[str, str]) -> None:
    """Raise `StartRefused` for a variable that nobody here knows and that would change what is served."""
    from paddock_stack.recipe.catalogue import find_lever

    for name, value in environ.items():
        if name.startswith("PRECACHE") and value not in ("", "0"):
            raise StartRefused(f"{name} replays the benchmark's prompts before it is timed; that is cheating")
        if name.startswith("PADDOCK_") and name not in OURS | LAUNCHERS | OPERATORS:
            raise StartRefused(f"{name} is no variable of this stack; unset it")
        if name in OURS - {switches.STEPTIME}:
            raise StartRefused(f"{name} is set by the profile; change it there, or record and cache miss it")
        if name.startswith("VLLM_") and name not in HARMLESS:
            raise StartRefused(f"{name} changes vLLM behind the profile's back; set it in the profile's env")
        lever = find_lever(name)
        if lever is not None and not lever.is_launchers and not name.startswith("PRECACHE"):
            raise StartRefused(f"{name} is of the published recipe; `paddock-stack import-manifest` translates it")


def check_libraries(profile: Profile, installed: Callable[[str], Source]) -> None:
    """Raise `StartRefused` where a library has no place for a lever of `profile`, before vLLM is started.

    `installed` returns the sources of a package, `vllm` or `torch`.
    """
    levers = profile.levers
    wanted = (*_ATTENTION.get(levers.attention, ()), *(_PRODUCTS if levers.skinny else ()))
    for lever, otherwise in (*wanted, *((_NORMS,) if levers.persistent_norms else ())):
        told = fault(lever, installed(lever.package))
        if told is not None:
            raise StartRefused(f"{told}; {otherwise}")


def check_checkpoints(target: Mapping[str, Any], drafter: Mapping[str, Any] | None) -> None:
    """Raise `StartRefused` where the configurations of model and drafter, as they will be served, don't fit."""
    text = text_part(dict(target))
    if keepset.IDS_KEY in text and is_tied(dict(target)):
        raise StartRefused(
            "the keep-set needs a head of its own, but the head is tied to the embedding; untie it first"
        )
    if gone := [kind for kind, key in _TOWERS.items() if "text_config" in target and not target.get(key)]:
        raise StartRefused(
            f"the checkpoint's configuration has no {_TOWERS[gone[0]]}, so its {gone[0]} tower was taken out, but all "
            "modalities must work; serve the whole checkpoint"
        )
    if drafter is None:
        return
    windows = [part.get("sliding_window") for part in (text, text_part(dict(drafter)))]
    if windows[0] != windows[1]:
        raise StartRefused(
            f"the model's window is {windows[0]} and its drafter's {windows[1]}: the drafter would read blocks that "
            "are freed already; set `window`"
        )


def check_towers(target: Mapping[str, Any], modules: Iterable[str]) -> None:
    """Raise `StartRefused` where `target` names a tower of which the weights' `modules` hold nothing."""
    held = {part for module in modules for part in module.split(".")}
    if gone := [kind for kind in has_towers(target) if _TOWER_MODULES[kind] not in held]:
        raise StartRefused(
            f"config.json has a {_TOWERS[gone[0]]}, but the weights hold nothing of that {gone[0]} tower, and all "
            "modalities must work; serve the whole checkpoint"
        )


def has_towers(target: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which of `image` and `audio` the checkpoint has a tower for: both, or none where it is of text alone."""
    return tuple(kind for kind, key in _TOWERS.items() if target.get(key))
