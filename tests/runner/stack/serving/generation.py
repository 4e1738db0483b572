"""Tasks of the zygote that serve a checkpoint with vLLM; they run in the server environment."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

KV_CACHE_BYTES = 64 << 20
PLUGIN = "paddock_stack.models.gemma4:PrunedGemma4"
_kept: list[Any] = []  # an engine that is let go is taken apart, which a process about to exit need not wait for


def generate(
    folder: str,
    prompts: list[list[int]],
    max_tokens: int,
    *,
    stock: bool = False,
    prompt_logprobs: bool = False,
    media: list[dict[str, Any]] | None = None,
    options: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return greedy `tokens` of every prompt (and its `prompt_logprobs`), the model's `classes` and `drafts` counted.

    `stock` leaves the plugin out. `media` holds, for each prompt, an object with `image` (height, width) or `audio`
    (samples), filled with the `pattern` of a number, 7 where none is given. `options` are vLLM's own.
    """
    from vllm import LLM, SamplingParams

    if not stock:
        plug()
    engine = LLM(folder, **(_defaults(with_processor=_is_multimodal(folder)) | (options or {})))
    _kept.append(engine)
    asked = SamplingParams(
        temperature=0,
        max_tokens=max_tokens,
        ignore_eos=True,
        detokenize=False,
        prompt_logprobs=0 if prompt_logprobs else None,
    )
    inputs: list[dict[str, Any]] = [{"prompt_token_ids": prompt} for prompt in prompts]
    for given, medium in zip(inputs, media or [], strict=False):
        given["multi_modal_data"] = _media(medium)
    # One prompt a time: what is asserted is equality with plain decoding, whose batch is one.
    answers = [engine.generate([given], asked, use_tqdm=False)[0] for given in inputs]
    return {
        "tokens": [list(answer.outputs[0].token_ids) for answer in answers],
        "prompt_logprobs": [_logprobs(answer) for answer in answers] if prompt_logprobs else None,
        "classes": _classes(engine),
        "drafts": _drafts(engine),
    }


def timed(**arguments: Any) -> None:
    """Generate, then run what vLLM's process runs at its end: a fork of the zygote has no exit of its own."""
    import atexit

    generate(**arguments)
    atexit._run_exitfuncs()


def plug() -> None:
    """Call the plugin as vLLM does, then hand over the class itself, so that vLLM need not look at it in a process."""
    from vllm import ModelRegistry

    from paddock_stack.models.gemma4 import PrunedGemma4
    from paddock_stack.plugin import register

    register()
    registered = ModelRegistry.models["Gemma4ForCausalLM"]
    assert f"{registered.module_name}:{registered.class_name}" == PLUGIN
    ModelRegistry.register_model("Gemma4ForCausalLM", PrunedGemma4)


def _is_multimodal(folder: str) -> bool:
    return "vision_config" in json.loads(Path(folder, "config.json").read_text())


def _defaults(*, with_processor: bool) -> dict[str, Any]:
    os.environ.pop("VLLM_CPU_KVCACHE_SPACE", None)
    return {
        "dtype": "float32",
        "enforce_eager": True,
        "max_model_len": 512,
        "max_num_seqs": 1,
        "kv_cache_memory_bytes": KV_CACHE_BYTES,
        "skip_tokenizer_init": not with_processor,
        "enable_prefix_caching": False,
        "disable_log_stats": False,
    }


def _media(medium: dict[str, Any]) -> dict[str, Any]:
    import numpy

    pattern = medium.get("pattern", 7)
    if "audio" in medium:
        wave = numpy.sin(numpy.arange(medium["audio"], dtype=numpy.float32) / pattern)
        return {"audio": (wave, 16000)}
    height, width = medium["image"]
    ramp = numpy.arange(height * width * 3, dtype=numpy.uint32) * pattern % 256
    from PIL import Image

    return {"image": Image.fromarray(ramp.astype(numpy.uint8).reshape(height, width, 3))}


def _logprobs(answer: Any) -> list[float | None]:
    """Return the logprob of every prompt token, None for the first, -1e9 for minus infinity."""
    told = zip(answer.prompt_token_ids, answer.prompt_logprobs, strict=True)
    return [None if each is None else max(each[token].logprob, -1e9) for token, each in told]


def _classes(engine: Any) -> list[str]:
    return list(engine.apply_model(_class_names)[0])


def _class_names(model: Any) -> list[str]:
    inner = getattr(model, "language_model", model)
    return [type(model).__name__, type(inner).__name__]


def _drafts(engine: Any) -> dict[str, int]:
    metrics = {metric.name: getattr(metric, "value", 0) for metric in engine.get_metrics()}
    return {
        "drafted": int(metrics.get("vllm:spec_decode_num_draft_tokens", 0)),
        "accepted": int(metrics.get("vllm:spec_decode_num_accepted_tokens", 0)),
    }
