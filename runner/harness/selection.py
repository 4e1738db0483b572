"""Which prompts of a set are measured, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from runner.harness.faults import BadInput
from runner.harness.keyed_random import KeyedRandom
from runner.harness.prompts import Prompt
from runner.harness.rendering import ChallengeTokenizer


@dataclass(frozen=True)
class Chosen:
    """A prompt with its token ids and its place in the file, counted from 0."""

    prompt: Prompt
    token_ids: tuple[int, ...]
    dataset_index: int


def select(
    prompts: Sequence[Prompt], tokenizer: ChallengeTokenizer, *, count: int, seed: int, max_prompt_tokens: int
) -> list[Chosen]:
    """Return `count` different prompts of at most `max_prompt_tokens` tokens, in an order drawn from `seed`.

    Raises:
        BadInput: fewer prompts are short enough than were asked for.
    """
    rendered = (Chosen(prompt, tuple(tokenizer.prompt_ids(prompt)), index) for index, prompt in enumerate(prompts))
    short_enough = [chosen for chosen in rendered if len(chosen.token_ids) <= max_prompt_tokens]
    if len(short_enough) < count:
        raise BadInput(
            f"{count} prompts were asked for, but only {len(short_enough)} of {len(prompts)} "
            f"have at most {max_prompt_tokens} tokens"
        )
    KeyedRandom(f"{seed}:selection".encode()).shuffle(short_enough)
    return short_enough[:count]
