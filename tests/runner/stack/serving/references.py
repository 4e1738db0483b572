"""Tasks of the zygote that ask transformers for the same thing as vLLM; they run in the server environment."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, Gemma4ForConditionalGeneration


def generate(
    folder: str,
    prompts: list[list[int]],
    max_tokens: int,
    *,
    keep: list[int] | None = None,
    skip: list[int] | None = None,
    multimodal: bool = False,
) -> dict[str, Any]:
    """Return greedy `tokens` of every prompt in fp32, and the `logprobs` that the prompts' own tokens have.

    `keep` lets only these tokens be chosen; `skip` leaves these layers out.
    """
    model = _loaded(folder, multimodal=multimodal)
    for index in skip or []:
        _skip(model, index)
    mask = torch.zeros(model.get_input_embeddings().weight.shape[0])
    if keep is not None:
        mask.fill_(float("-inf"))[torch.tensor(keep)] = 0.0
    with torch.no_grad():
        tokens = [_greedy(model, prompt, max_tokens, mask) for prompt in prompts]
        logprobs = [_logprobs(model, prompt, mask) for prompt in prompts]
    return {"tokens": tokens, "logprobs": logprobs}


def _loaded(folder: str, *, multimodal: bool) -> Any:
    kind = Gemma4ForConditionalGeneration if multimodal else AutoModelForCausalLM
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def _skip(model: Any, index: int) -> None:
    model.get_decoder().layers[index].forward = lambda hidden_states, *_, **__: hidden_states


def _greedy(model: Any, prompt: list[int], max_tokens: int, mask: torch.Tensor) -> list[int]:
    """Decode without a cache: what is compared is vLLM's own."""
    ids = list(prompt)
    for _ in range(max_tokens):
        logits = model(torch.tensor([ids]), use_cache=False).logits[0, -1]
        ids.append(int((logits + mask).argmax()))
    return ids[len(prompt) :]


def _logprobs(model: Any, prompt: list[int], mask: torch.Tensor) -> list[float | None]:
    told = (model(torch.tensor([prompt]), use_cache=False).logits[0] + mask).log_softmax(dim=-1)
    return [None, *(max(float(told[place, token]), -1e9) for place, token in enumerate(prompt[1:]))]
