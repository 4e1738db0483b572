"""Tasks of the zygote that serve a profile's CPU variant; they run in the server environment."""

from __future__ import annotations

from typing import Any

from tests.runner.stack.serving import generation

KV_CACHE_BYTES = 64 << 20
_kept: list[Any] = []


def serve(
    folder: str, options: dict[str, Any], prompts: list[list[int]], max_tokens: int, media: list[dict[str, Any]]
) -> dict[str, Any]:
    """Start one engine and ask all of it: `tokens` of the prompts twice, of the prompts with `media`, and `scores`.

    `scores` holds, for each prompt and the answer to it, a pair for each token but the first: its log-probability in
    the path that scores prompts, and that of the best token there.
    """
    from vllm import LLM

    generation.plug()
    engine = LLM(folder, kv_cache_memory_bytes=KV_CACHE_BYTES, disable_log_stats=False, **options)
    _kept.append(engine)
    plain: list[dict[str, Any]] = [{"prompt_token_ids": prompt} for prompt in prompts]
    first = [_tokens(engine, each, max_tokens) for each in plain]
    again = [_tokens(engine, each, max_tokens) for each in plain]
    seen = [
        _tokens(engine, {"prompt_token_ids": each["prompt"], "multi_modal_data": generation._media(each)}, max_tokens)
        for each in media
    ]
    scores = [_scored(engine, [*prompt, *answer]) for prompt, answer in zip(prompts, first, strict=True)]
    return {"tokens": first, "again": again, "seen": seen, "scores": scores, "drafts": generation._drafts(engine)}


def config_hash(folder: str, additional: dict[str, Any]) -> str:
    """Return the key under which vLLM would keep what it compiles for `folder` with this additional configuration."""
    from vllm.engine.arg_utils import EngineArgs

    args = EngineArgs(model=folder, enforce_eager=True, max_model_len=512, skip_tokenizer_init=True,
                      additional_config=additional)  # fmt: skip
    return str(args.create_engine_config().compute_hash())


def _tokens(engine: Any, given: dict[str, Any], max_tokens: int) -> list[int]:
    from vllm import SamplingParams

    asked = SamplingParams(temperature=0, max_tokens=max_tokens, ignore_eos=True, detokenize=False)
    return list(engine.generate([given], asked, use_tqdm=False)[0].outputs[0].token_ids)


def _scored(engine: Any, ids: list[int]) -> list[tuple[float, float]]:
    from vllm import SamplingParams

    asked = SamplingParams(temperature=0, max_tokens=1, detokenize=False, prompt_logprobs=1)
    answer = engine.generate([{"prompt_token_ids": ids}], asked, use_tqdm=False)[0]
    return [
        (told[token].logprob, max(each.logprob for each in told.values()))
        for token, told in zip(ids[1:], answer.prompt_logprobs[1:], strict=True)
    ]
