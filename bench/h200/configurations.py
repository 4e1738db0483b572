"""Turn the name of a measurement into vLLM's environment and engine arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MARLIN = {"VLLM_DISABLED_KERNELS": "MacheteLinearKernel,CutlassW4A8LinearKernel"}
OURS = {"PADDOCK_SKINNY": "1"}
REPEATABLE = {"deterministic": True, "combo_kernels": True, "benchmark_combo_kernel": False}
COMMON: dict[str, Any] = {
    "load_format": "seeded",
    "dtype": "bfloat16",
    "max_model_len": 4096,
    "max_num_seqs": 1,
    "max_num_batched_tokens": 512,
    "enable_prefix_caching": False,
    "skip_tokenizer_init": True,
    "disable_log_stats": False,
    "seed": 0,
    "gpu_memory_utilization": 0.05,  # only asked for at the start: the cache has the size below
    "kv_cache_memory_bytes": 1 << 30,  # measured against free memory, it would be wrong beside other engines
}


def configuration(name: str, folder: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the environment and engine of `SHAPE-LAYERS[-int4-gN][+marlin|+ours][+2d|+split][+det][+mtpK]`."""
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
