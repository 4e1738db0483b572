"""The two request shapes of a measurement, as bytes that are ready before any clock starts."""

from __future__ import annotations

import json
from collections.abc import Sequence

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"


def decode_body(model: str, prompt_ids: Sequence[int], output_tokens: int) -> bytes:
    """Return the request for exactly `output_tokens` greedy tokens after `prompt_ids`; warm-up and timed ones alike."""
    return _body(model, prompt_ids, output_tokens)


def scoring_body(model: str, token_ids: Sequence[int]) -> bytes:
    """Return the request for the log-probability of each of `token_ids`."""
    return _body(model, token_ids, 1, prompt_logprobs=1)


def chat_body(model: str, text: str, most_tokens: int) -> bytes:
    """Return a plain chat request."""
    messages = [{"role": "user", "content": text}]
    return _encoded({"model": model, "messages": messages, "max_tokens": most_tokens, "temperature": 0})


def _body(model: str, prompt_ids: Sequence[int], max_tokens: int, **more: int) -> bytes:
    return _encoded(
        {
            "model": model,
            "prompt": list(prompt_ids),
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": False,
            "add_special_tokens": False,
            "ignore_eos": True,
            "return_token_ids": True,
            **more,
        }
    )


def _encoded(payload: dict[str, object]) -> bytes:
    return json.dumps(payload, separators=(",", ":")).encode()
