"""Turn the name of a measurement into vLLM's environment and engine arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paddock_stack.launcher import command
from paddock_stack.profiles.catalogue import load, read_setting
from paddock_stack.profiles.schema import Machine

MARLIN = {"VLLM_DISABLED_KERNELS": "MacheteLinearKernel,CutlassW4A8LinearKernel"}
OURS = {"PADDOCK_SKINNY": "1"}
REPEATABLE = {"deterministic": True, "combo_kernels": True, "benchmark_combo_kernel": False}
HERE: dict[str, Any] = {
    "load_format": "seeded",
    "skip_tokenizer_init": True,
    "disable_log_stats": False,
    "seed": 0,
    "gpu_memory_utilization": 0.05,  # only asked for at the start: the cache has the size below
    "kv_cache_memory_bytes": 1 << 30,  # measured against free memory, it would be wrong beside other engines
}
COMMON: dict[str, Any] = {
    **HERE,
    "dtype": "bfloat16",
    "max_model_len": 4096,
    "max_num_seqs": 1,
    "max_num_batched_tokens": 512,
    "enable_prefix_caching": False,
}


SERVERS = frozenset({"enable-log-requests", "disable-uvicorn-access-log"})
# What a profile's bake leaves of a shape; of the others shapes.py writes one under their name.
BAKED = {
    "exact-bf16": "42L",
    "exact-mtp": "42L",
    "int4-ar": "42L-int4-g128",
    "int4-fast": "42L-int4-g32",
}


def configuration(name: str, folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the environment and engine of a name, which is one of two kinds:

    SHAPE-LAYERS[-int4-gN][+marlin|+ours][+2d|+split][+det][+mtpK]      lever by lever
    SHAPE:PROFILE[:KEY=VALUE,...][+mtpK]        a bundled profile with overrides, drafting only if it says so
    """
    return _of_profile(name, folder) if ":" in name else _of_levers(name, folder)


def _of_profile(name: str, folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    named, _, tokens = name.partition("+mtp")
    shape, _, rest = named.partition(":")
    told, _, settings = rest.partition(":")
    machine = Machine.CPU if shape == "tiny" else Machine.H200
    overrides = dict(read_setting(each) for each in settings.split(",") if each)
    overrides["speculation.tokens"] = int(tokens or 0)
    profile = load(told, machine, overrides)
    own = folder / f"{shape}-drafter-{told}"
    said = command.options(profile, own if own.is_dir() else folder / f"{shape}-drafter")
    engine = {option.replace("-", "_"): value for option, value in said.items() if option not in SERVERS}
    checkpoint = folder / f"{shape}-{BAKED.get(told, told)}"
    environment = {**profile.env, **command.switches_of(profile.levers)}
    return environment, {**engine, **HERE, "model": str(checkpoint)}


def _of_levers(name: str, folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    checkpoint, *extras = name.split("+")
    engine: dict[str, Any] = {**COMMON, "model": str(folder / checkpoint)}
    environment: dict[str, str] = {}
    for extra in extras:
        if extra == "marlin":
            environment |= MARLIN
        elif extra == "ours":
            environment |= MARLIN | OURS
        elif extra in ("2d", "split"):
            engine |= {"attention_backend": "CUSTOM"}
            environment["PADDOCK_ATTENTION"] = "2d" if extra == "2d" else "fixed_split"
        elif extra == "det":
            engine["compilation_config"] = {"inductor_compile_config": REPEATABLE}
        elif extra.startswith("mtp"):
            draft = str(folder / f"{checkpoint.split('-')[0]}-drafter")
            tokens = int(extra.removeprefix("mtp"))
            engine["speculative_config"] = {"method": "mtp", "model": draft, "num_speculative_tokens": tokens}
        else:
            raise SystemExit(f"no such extra: {extra}")
    engine["additional_config"] = environment  # vLLM's compile cache knows the configuration, not our switches
    return environment, engine
