"""List the variables of the published recipe and what became of each on current vLLM.

The names are those of public manifests; a name that ends in `*` stands for all that begin so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What a variable of the recipe turns into."""

    NATIVE = "native"  # an option of vLLM
    PLUGIN = "plugin"  # a lever of this stack's plugin
    BAKE = "bake step"  # done to the weights beforehand
    LAUNCHER = "launcher"  # done at start
    REFUSED = "refused"
    NOTHING = "no effect today"


@dataclass(frozen=True)
class Lever:
    """One variable: its fate and, in a sentence, why or how.

    `is_launchers` marks those that the launcher itself reads or bears in its environment.
    """

    name: str
    fate: Fate
    how: str
    is_launchers: bool = False


_ON_BY_ITSELF = "vLLM does it by itself"
LEVERS = (
    Lever("MODEL_ID", Fate.LAUNCHER, "the checkpoint, where no other is named", is_launchers=True),
    Lever("SERVED_MODEL_NAME", Fate.LAUNCHER, "the runner's", is_launchers=True),
    Lever("HOST", Fate.LAUNCHER, "the runner's", is_launchers=True),
    Lever("PORT", Fate.LAUNCHER, "the runner's", is_launchers=True),
    Lever("SERVE_MODEL_OVERRIDE", Fate.LAUNCHER, "weights.uri"),
    Lever("WEIGHTS_BUCKET", Fate.LAUNCHER, "weights.uri; as it is mutable, pin it with weights.sha256"),
    Lever("WEIGHTS_SHA256", Fate.LAUNCHER, "weights.sha256"),
    Lever("DRAFTER_BUCKET", Fate.LAUNCHER, "speculation.drafter.uri"),
    Lever("DRAFTER_SHA256", Fate.LAUNCHER, "speculation.drafter.sha256"),
    Lever("LOCAL_MODEL_DIR", Fate.NOTHING, "the launcher has a cache of its own"),
    Lever("LOCAL_DRAFTER_DIR", Fate.NOTHING, "the launcher has a cache of its own"),
    Lever("LM_HEAD_PRUNE", Fate.BAKE, "prune-head; at start, or ahead with `paddock-stack bake`"),
    Lever(
        "LM_HEAD_KEEPSET_BUCKET",
        Fate.BAKE,
        "prune-head --keep: put the bucket's list of ids beside the profile as keepset.json",
    ),
    Lever(
        "PCK04_KEEPSET",
        Fate.BAKE,
        "prune-head --of, whose rows the head has: put its list of ids beside the profile as the step names it",
    ),
    Lever("LM_HEAD_PRUNE_DST", Fate.NOTHING, "the launcher has a cache of its own"),
    Lever("LM_HEAD_PRUNE_REQUIRE", Fate.NOTHING, "a bake that is not whole is never served"),
    Lever("SLIDING_WINDOW", Fate.LAUNCHER, "window, written into the model's configuration and its drafter's"),
    Lever("HF_OVERRIDES", Fate.LAUNCHER, "its window becomes `window`: overrides never reach the drafter"),
    Lever("CENTROID_TOP_K", Fate.LAUNCHER, "centroid_top_k, written into the drafter's configuration"),
    Lever("SPECULATIVE_CONFIG", Fate.NATIVE, "speculation.tokens and its drafter; local argmax is added"),
    Lever("FA_SLIDING", Fate.REFUSED, "null or a loss alone, and runs no longer repeated themselves (PR 38)"),
    Lever("FA_SLIDING_*", Fate.NOTHING, "settings of a lever that is refused"),
    Lever("SPLITKV_VERIFY", Fate.NATIVE, "vLLM 0.33 splits up to eight rows; levers.attention = native"),
    Lever("SPLITKV_VERIFY_*", Fate.NOTHING, "vLLM's own limit is eight rows, so K <= 7"),
    Lever("ONEGRAPH", Fate.NATIVE, "the V2 runner captures the draft loop as one graph at start"),
    Lever("LOOPGRAPH", Fate.NATIVE, "the V2 runner captures the draft loop as one graph at start"),
    Lever("LOOPGRAPH_*", Fate.NOTHING, "captured at start: no warm-up calls, no slots"),
    Lever("PINGPONG*", Fate.NOTHING, "captured at start: no slots"),
    Lever("FUSED_SPARSE_ARGMAX", Fate.PLUGIN, "levers.fused_argmax"),
    Lever(
        "FUSED_SPARSE_ARGMAX_*",
        Fate.NOTHING,
        "the plugin has its own block size and refuses a vLLM that it does not fit",
    ),
    Lever("DIXIE_SLIM_GREEDY", Fate.NATIVE, "the V2 sampler hands raw logits on when nothing is to be done to them"),
    Lever("DIXIE_FUSED_ACCEPT_PREP", Fate.NATIVE, "the V2 rejection sampler is fused"),
    Lever("DIXIE_*", Fate.NOTHING, _ON_BY_ITSELF),
    Lever("PLE_*", Fate.NOTHING, "a few elementwise launches, fused by the compiler already"),
    Lever("DETOK_ENDONLY", Fate.NOTHING, "about 4 µs of a step of 7,900 µs"),
    Lever("FASTRENDER", Fate.NOTHING, "never measured alone; no cost a token, and prompts must stay the template's"),
    Lever("FEOPT_ORJSON", Fate.NATIVE, _ON_BY_ITSELF),
    Lever("FEOPT_*", Fate.NOTHING, _ON_BY_ITSELF),
    Lever("WARMUP_NUM_PROMPTS", Fate.LAUNCHER, "warm_up.prompts"),
    Lever("WARMUP_MAX_TOKENS", Fate.LAUNCHER, "warm_up.max_tokens, at least 16 so that drafting is warmed up as well"),
    Lever("WARMUP_SEED", Fate.LAUNCHER, "warm_up.seed"),
    Lever("WARMUP_*", Fate.NOTHING, "the launcher's warm-up is always on, synthetic and recorded"),
    Lever(
        "PRECACHE_BENCH", Fate.REFUSED, "it replays the benchmark's own prompts before it is timed; that is cheating"
    ),
    Lever("PRECACHE_*", Fate.NOTHING, "settings of a lever that is refused"),
    Lever("GENERATION_CONFIG", Fate.NATIVE, "engine.generation-config"),
    Lever("OVERRIDE_GENERATION_CONFIG", Fate.NATIVE, "engine.override-generation-config"),
    Lever("PERFORMANCE_MODE", Fate.NATIVE, "engine.performance-mode"),
    Lever("MAX_MODEL_LEN", Fate.NATIVE, "engine.max-model-len"),
    Lever("MAX_NUM_SEQS", Fate.NATIVE, "engine.max-num-seqs"),
    Lever("MAX_NUM_BATCHED_TOKENS", Fate.NATIVE, "engine.max-num-batched-tokens"),
    Lever("GPU_MEMORY_UTILIZATION", Fate.NATIVE, "engine.gpu-memory-utilization"),
    Lever("ENABLE_PREFIX_CACHING", Fate.REFUSED, "hits between prompts would count as speed"),
    Lever("ATTENTION_BACKEND", Fate.NATIVE, "levers.attention = native for TRITON_ATTN; no other is offered"),
    Lever("DISABLE_LOG_STATS", Fate.REFUSED, "acceptance is read off vLLM's counters"),
    Lever("UVICORN_LOG_LEVEL", Fate.NOTHING, "the launcher turns the access log off"),
    Lever("PYTORCH_CUDA_ALLOC_CONF", Fate.NATIVE, "env", is_launchers=True),
    Lever(
        "LD_PRELOAD",
        Fate.NOTHING,
        "no gain was ever measured alone; the operator may preload what is there",
        is_launchers=True,
    ),
    Lever("STEPTIME*", Fate.PLUGIN, "PADDOCK_STEPTIME=FILE, set by whoever measures"),
    Lever("TRUST_REMOTE_CODE", Fate.REFUSED, "Gemma 4 needs none of it"),
    Lever("PATCH_BENCH_*", Fate.REFUSED, "a server has no business with the benchmark's environment"),
    Lever("VLLM_MARLIN_USE_ATOMIC_ADD", Fate.REFUSED, "16 tok/s slower"),
)


def find_lever(name: str) -> Lever | None:
    """Return the lever of the variable `name`, an exact one before a pattern, or None for an unknown one."""
    exact = next((lever for lever in LEVERS if lever.name == name), None)
    patterns = (lever for lever in LEVERS if lever.name.endswith("*") and name.startswith(lever.name[:-1]))
    return exact or next(patterns, None)
