"""Send the synthetic requests that come before readiness, and tell what was sent.

Half are chats, half completions of token ids, as benchmarks ask them; then one that scores its prompt, whose first time
costs a compilation, and one for each tower.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from paddock_stack.launcher import media, salad
from paddock_stack.launcher.asking import NotAnswered, Server
from paddock_stack.profiles.schema import WarmUp

_SAMPLE_WORDS = 200


@dataclass(frozen=True)
class Warmed:
    """What the warm-up was: counts, seed, lengths in tokens, seconds, and the SHA-256 of the prompts' text."""

    prompts: int
    seed: int
    max_tokens: int
    shortest_tokens: int
    longest_tokens: int
    prompts_sha256: str
    scored_prompts: int
    towers: tuple[str, ...]
    seconds: float

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def warm_up(server: Server, model: str, settings: WarmUp, towers: Sequence[str]) -> Warmed:
    """Warm `server` up; raise `NotAnswered` at the first request that fails or whose answer is short."""
    started = time.monotonic()
    sample = server.post("/tokenize", {"model": model, "prompt": salad.text(settings.seed, -1, _SAMPLE_WORDS)})
    per_word = len(sample["tokens"]) / _SAMPLE_WORDS
    prompts, seen = [], []
    for number, length in enumerate(salad.lengths(settings)):
        prompts.append(salad.text(settings.seed, number, max(1, round(length / per_word))))
        asked = _chat if number % 2 == 0 else _completion
        seen.append(asked(server, model, prompts[-1], settings.max_tokens))
    _score(server, model, prompts[0])
    for kind in towers:
        _look(server, model, kind, settings.max_tokens)
    return Warmed(
        prompts=len(prompts),
        seed=settings.seed,
        max_tokens=settings.max_tokens,
        shortest_tokens=min(seen),
        longest_tokens=max(seen),
        prompts_sha256=salad.digest(prompts),
        scored_prompts=1,
        towers=tuple(towers),
        seconds=round(time.monotonic() - started, 3),
    )


def _chat(server: Server, model: str, prompt: str, most: int) -> int:
    messages = [{"role": "user", "content": prompt}]
    return _prompt_tokens(server.post("/v1/chat/completions", _asked(model, most, messages=messages)), most)


def _completion(server: Server, model: str, prompt: str, most: int) -> int:
    ids = server.post("/tokenize", {"model": model, "prompt": prompt})["tokens"]
    return _prompt_tokens(server.post("/v1/completions", _asked(model, most, prompt=ids, return_token_ids=True)), most)


def _score(server: Server, model: str, prompt: str) -> None:
    ids = server.post("/tokenize", {"model": model, "prompt": prompt})["tokens"]
    told = server.post("/v1/completions", _asked(model, 1, prompt=ids, prompt_logprobs=1, add_special_tokens=False))
    if len(told["choices"][0].get("prompt_logprobs") or ()) != len(ids):
        raise NotAnswered("the server did not score the warm-up's prompt token by token")


def _look(server: Server, model: str, kind: str, most: int) -> None:
    content = [{"type": "text", "text": salad.text(0, 0, 4)}, media.part(kind)]
    messages = [{"role": "user", "content": content}]
    try:
        _prompt_tokens(server.post("/v1/chat/completions", _asked(model, most, messages=messages)), most)
    except NotAnswered as fault:
        raise NotAnswered(f"the {kind} tower does not work here: {fault}") from fault


def _asked(model: str, most: int, **rest: Any) -> dict[str, Any]:
    return {"model": model, "max_tokens": most, "temperature": 0, "ignore_eos": True, **rest}


def _prompt_tokens(told: dict[str, Any], most: int) -> int:
    if told["usage"]["completion_tokens"] != most:
        raise NotAnswered(f"the server answered {told['usage']['completion_tokens']} tokens of {most} in the warm-up")
    return int(told["usage"]["prompt_tokens"])
