"""Decode at concurrency 1: warm-up on random tokens, then the timed block, whose replies are the audited ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from runner.harness import bodies, wire
from runner.harness.keyed_random import KeyedRandom
from runner.harness.rendering import ChallengeTokenizer
from runner.harness.replies import Completion, read_completion, refuse_status
from runner.harness.run_folder import announce
from runner.harness.selection import Chosen
from runner.harness.spec import Spec

_BYTES_PER_TOKEN = 1024  # an id, its text and what servers add; far above what honest replies need
_WARMUP_PROMPT_TOKENS = (64, 256)


@dataclass(frozen=True)
class Timed:
    """One timed request: what was asked, what came back, and its wall time in seconds."""

    chosen: Chosen
    completion: Completion
    latency_s: float


@dataclass(frozen=True)
class Decoded:
    """The timed block. `duration_s` is wall time from before the first request to after the last reply."""

    timed: list[Timed]
    duration_s: float

    @property
    def output_tokens(self) -> int:
        """Return how many ids were received."""
        return sum(len(one.completion.token_ids) for one in self.timed)

    @property
    def input_tokens(self) -> int:
        """Return how many prompt ids were sent."""
        return sum(len(one.chosen.token_ids) for one in self.timed)


def warm_up(endpoint: wire.Endpoint, tokenizer: ChallengeTokenizer, spec: Spec) -> None:
    """Send `spec.warmup_requests` requests of the timed shape whose prompts are random tokens."""
    draw = KeyedRandom(f"{spec.seed}:warmup".encode())
    known = tokenizer.plain_ids()
    for done in range(1, spec.warmup_requests + 1):
        length = min(draw.randint(*_WARMUP_PROMPT_TOKENS), spec.max_prompt_tokens)
        prompt = draw.choices(known, k=length)
        body = bodies.decode_body(spec.served_model_name, prompt, spec.output_tokens)
        reply = endpoint.post(bodies.COMPLETIONS, body, most_bytes=_most_bytes(length, spec))
        read_completion(reply, tokenizer, prompt, spec.output_tokens, f"warm-up request {done}")
        announce("warmup", done, spec.warmup_requests)


def decode(endpoint: wire.Endpoint, tokenizer: ChallengeTokenizer, chosen: Sequence[Chosen], spec: Spec) -> Decoded:
    """Time the requests one after another, then check every reply.

    Bodies are built before the clock starts and replies are parsed after it stops, so that the time is the server's.
    """
    orders = [
        (
            bodies.decode_body(spec.served_model_name, one.token_ids, spec.output_tokens),
            _most_bytes(len(one.token_ids), spec),
        )
        for one in chosen
    ]
    replies, marks = [], [time.perf_counter()]
    for done, (body, most_bytes) in enumerate(orders, 1):
        reply = endpoint.post(bodies.COMPLETIONS, body, most_bytes=most_bytes)
        marks.append(time.perf_counter())
        refuse_status(reply, f"timed request {done}")
        replies.append(reply)
        announce("benchmark", done, len(orders))
    completions = [
        read_completion(reply, tokenizer, one.token_ids, spec.output_tokens, f"timed request {number}")
        for number, (one, reply) in enumerate(zip(chosen, replies, strict=True), 1)
    ]
    latencies = [after - before for before, after in pairwise(marks)]
    timed = [Timed(*parts) for parts in zip(chosen, completions, latencies, strict=True)]
    return Decoded(timed, marks[-1] - marks[0])


def _most_bytes(prompt_tokens: int, spec: Spec) -> int:
    return wire.HEADROOM_BYTES + _BYTES_PER_TOKEN * (prompt_tokens + spec.output_tokens)
