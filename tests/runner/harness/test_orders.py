"""An order that cannot be carried out is our fault, not the submission's: status 2, one sentence, no failure.json."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runner.harness.conftest import Outcome
from tests.runner.harness.endpoint import Endpoint

Harness = Callable[..., Outcome]


@pytest.mark.parametrize(
    "change",
    [
        {"base_url": None},
        {"uds": "/tmp/both"},
        {"base_url": "https://127.0.0.1:1"},
        {"base_url": "http://127.0.0.1"},
        {"base_url": "http://127.0.0.1:99999999"},
        {"num_prompts": 0},
        {"num_prompts": 2.5},
        {"num_prompts": True},
        {"num_prompts": 9},
        {"output_tokens": "64"},
        {"seed": -1},
        {"request_timeout_s": 0},
        {"request_timeout_s": float("inf")},
        {"ppl_cap": float("nan")},
        {"ppl_cap": -1},
        {"run_id": ""},
        {"hardware": None},
        {"prompts": "/nowhere"},
        {"references": "/nowhere"},
        {"tokenizer": "/nowhere"},
        {"unheard_of": 1},
    ],
    ids=str,
)
def test_unusable_order_is_an_incident_and_never_a_failure_of_the_submission(
    harness: Harness, change: dict[str, Any]
) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint, **change)
        assert endpoint.requests == []
    assert outcome.status == 2
    assert len(outcome.stderr.splitlines()) == 1
    assert not (outcome.folder / "failure.json").exists()


@pytest.mark.parametrize("missing", ["served_model_name", "tokenizer", "prompts", "num_prompts", "seed", "run_id"])
def test_missing_field_is_named(harness: Harness, spec: dict[str, Any], missing: str) -> None:
    del spec[missing]
    with Endpoint() as endpoint:
        outcome = harness(endpoint)
    assert outcome.status == 2
    assert missing in outcome.stderr


def test_references_that_allow_no_decoy_are_refused(harness: Harness, tmp_path: Path) -> None:
    path = tmp_path / "flat.jsonl"
    path.write_text('{"id": "a", "prompt_token_ids": [1], "target_token_ids": [5, 5, 5]}\n')
    with Endpoint() as endpoint:
        assert harness(endpoint, references=str(path)).status == 2
