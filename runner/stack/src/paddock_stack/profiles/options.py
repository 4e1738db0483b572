"""Own which options of vLLM a profile may set under `engine`, and of which form each is."""

from __future__ import annotations

from collections.abc import Mapping

# What isn't here is either the launcher's own business or nobody's.
ENGINE = frozenset(
    (
        *("dtype", "max-model-len", "max-num-seqs", "max-num-batched-tokens", "gpu-memory-utilization", "seed"),
        *("performance-mode", "generation-config", "override-generation-config", "async-scheduling", "enforce-eager"),
        *("enable-prefix-caching", "enable-log-requests", "disable-uvicorn-access-log", "linear-backend"),
        *("cudagraph-capture-sizes", "compilation-config", "hf-overrides", "limit-mm-per-prompt", "load-format"),
        *("kv-cache-memory-bytes",),
    )
)
_TABLES = ("override-generation-config", "compilation-config", "hf-overrides", "limit-mm-per-prompt")
_LISTS = ("cudagraph-capture-sizes",)


def fault(name: str, value: object) -> str | None:
    """Return what is wrong with setting the option `name` to `value`, to be read after its name, or None.

    vLLM takes tables as JSON text too, which no check here would look into; a list of words could end in an option.
    """
    if name not in ENGINE:
        return f"is no option; there are {', '.join(sorted(ENGINE))}"
    if name in _TABLES:
        return None if isinstance(value, Mapping) else f"must be a table, not {value!r}"
    if name in _LISTS:
        is_fit = isinstance(value, list) and all(type(one) is int for one in value)
        return None if is_fit else f"must be a list of whole numbers, not {value!r}"
    return f"must be one value, not {value!r}" if isinstance(value, Mapping | list) else None
