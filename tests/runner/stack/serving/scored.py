"""What the measurement's own scoring is asked for: records to score, decoys among them, by the harness's functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.harness import scoring, wire
from runner.harness.prompts import Reference
from runner.harness.spec import Spec, parse_spec

MODEL = "tiny"


def spec(base_url: str = "http://127.0.0.1:1") -> Spec:
    """Return the order to measure the model `MODEL` at `base_url`; scoring reads no more of it than the seed."""
    return parse_spec(
        {
            **{"base_url": base_url, "served_model_name": MODEL, "tokenizer": "-", "prompts": "-"},
            **{"num_prompts": 1, "output_tokens": 1, "warmup_requests": 0, "seed": 1, "max_prompt_tokens": 512},
            **{"request_timeout_s": 60, "hardware": "cpu", "run_id": "run_1"},
        }
    )


def score(endpoint: wire.Endpoint, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]]) -> Any:
    """Return perplexity and decoy gap of `answers` to `prompts`; raise `SubmissionFault` as the runner would."""
    records = [
        Reference(id=str(number), prompt_token_ids=tuple(prompt), target_token_ids=tuple(answer))
        for number, (prompt, answer) in enumerate(zip(prompts, answers, strict=True))
    ]
    found = scoring.score(endpoint, records, spec())
    return {"ppl": found.ppl, "decoys": len(found.decoys), "decoy_gap": found.decoy_gap}
