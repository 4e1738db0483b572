"""Tasks of the zygote that serve a profile's CPU variant; they run in the server environment."""

from __future__ import annotations

import json
from typing import Any

from runner.harness import wire
from tests.runner.stack.serving import generation, scored

KV_CACHE_BYTES = 64 << 20
BEST = 8
_kept: list[Any] = []


class InProcess(wire.Endpoint):
    """An engine of this process in the place of the server that the harness asks for log-probabilities."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def post(self, path: str, body: bytes, *, most_bytes: int) -> wire.Reply:  # noqa: ARG002
        """Answer a scoring request in the form of vLLM's own server."""
        asked = json.loads(body)
        told = [_entry(each) for each in _prompt_logprobs(self._engine, asked["prompt"], asked["prompt_logprobs"])]
        return wire.Reply(200, json.dumps({"choices": [{"prompt_logprobs": [None, *told]}]}).encode())


def tokens(folder: str, options: dict[str, Any], prompts: list[list[int]], max_tokens: int) -> list[list[int]]:
    """Return the greedy tokens of the prompts from an engine of its own."""
    engine = _started(folder, options)
    return [_tokens(engine, {"prompt_token_ids": prompt}, max_tokens) for prompt in prompts]


def serve(
    folder: str, options: dict[str, Any], prompts: list[list[int]], max_tokens: int, media: list[dict[str, Any]]
) -> dict[str, Any]:
    """Start one engine and ask all of it: `tokens` of the prompts twice, `seen` of those with `media`, and scores.

    `scores` holds, for each prompt and the answer to it and each token of them but the first, the pair of its
    log-probability and rank, and such pairs of the best tokens there. `whole` holds the same for the first prompt, but
    for every token of the vocabulary its log-probability alone. `measured` is what the harness makes of the answers.
    """
    engine = _started(folder, options)
    first, again = ([_tokens(engine, {"prompt_token_ids": each}, max_tokens) for each in prompts] for _ in range(2))
    seen = [
        _tokens(engine, {"prompt_token_ids": each["prompt"], "multi_modal_data": generation._media(each)}, max_tokens)
        for each in media
    ]
    texts = [[*prompt, *answer] for prompt, answer in zip(prompts, first, strict=True)]
    scores = [_scored(engine, ids, BEST) for ids in texts]
    whole = [(own, [value for value, _ in every]) for own, every in _scored(engine, texts[0], -1)]
    return {
        **{"tokens": first, "again": again, "seen": seen, "scores": scores, "whole": whole},
        "measured": scored.score(InProcess(engine), prompts, first),
        "drafts": generation._drafts(engine),
    }


def config_hash(folder: str, additional: dict[str, Any]) -> str:
    """Return the key under which vLLM would keep what it compiles for `folder` with this additional configuration."""
    from vllm.engine.arg_utils import EngineArgs

    args = EngineArgs(model=folder, enforce_eager=True, max_model_len=512, skip_tokenizer_init=True,
                      additional_config=additional)  # fmt: skip
    return str(args.create_engine_config().compute_hash())


def _started(folder: str, options: dict[str, Any]) -> Any:
    from vllm import LLM

    generation.plug()
    # A profile's server tells the best 20 at most; the rank of a token is checked against all of them.
    engine = LLM(folder, kv_cache_memory_bytes=KV_CACHE_BYTES, disable_log_stats=False, max_logprobs=-1, **options)
    _kept.append(engine)
    return engine


def _tokens(engine: Any, given: dict[str, Any], max_tokens: int) -> list[int]:
    from vllm import SamplingParams

    asked = SamplingParams(temperature=0, max_tokens=max_tokens, ignore_eos=True, detokenize=False)
    return list(engine.generate([given], asked, use_tqdm=False)[0].outputs[0].token_ids)


def _scored(engine: Any, ids: list[int], best: int) -> list[tuple[tuple[float, int], list[tuple[float, int]]]]:
    """Return each token's log-probability and rank, and those of the `best` tokens there, -1 for all, best first."""
    alone, among = (_prompt_logprobs(engine, ids, count) for count in (0, best))
    most = None if best < 0 else best
    return [
        (
            (own[token].logprob, own[token].rank),
            sorted(((one.logprob, one.rank) for one in told.values()), key=lambda one: one[1])[:most],
        )
        for token, own, told in zip(ids[1:], alone, among, strict=True)
    ]


def _prompt_logprobs(engine: Any, ids: list[int], best: int) -> list[dict[int, Any]]:
    from vllm import SamplingParams

    asked = SamplingParams(temperature=0, max_tokens=1, detokenize=False, prompt_logprobs=best)
    told = engine.generate([{"prompt_token_ids": ids}], asked, use_tqdm=False)[0].prompt_logprobs
    return list(told[1:])


def _entry(told: dict[int, Any]) -> dict[str, Any]:
    return {str(token): {"logprob": one.logprob, "rank": one.rank} for token, one in told.items()}
