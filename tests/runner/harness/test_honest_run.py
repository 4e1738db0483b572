"""What an honest server's measurement leaves behind, and what its own numbers cannot change."""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runner.harness.conftest import OUTPUT_TOKENS, Outcome
from tests.runner.harness.endpoint import Endpoint, Kind, Request, continuation

Harness = Callable[..., Outcome]


def test_honest_server_is_measured_and_every_stage_leaves_its_file(harness: Harness) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint)
    assert outcome.status == 0
    assert {path.name for path in outcome.folder.iterdir()} == {
        "benchmark.jsonl",
        "decode_outputs.jsonl",
        "decode_summary.json",
        "ppl_results.jsonl",
        "ppl_decoys.jsonl",
        "ppl_summary.json",
        "summary.json",
    }


def test_tps_is_received_ids_over_the_wall_time_of_the_timed_block(harness: Harness) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint)
    summary, totals = outcome.read("summary.json"), outcome.read("benchmark.jsonl")[0]
    assert totals["total_output_tokens"] == 5 * OUTPUT_TOKENS
    assert summary["tps"] == totals["output_throughput"] == 5 * OUTPUT_TOKENS / totals["duration"]
    assert summary["total_tps"] == pytest.approx((60 + totals["total_input_tokens"]) / totals["duration"])
    assert 0 < sum(totals["e2e_latencies_s"]) <= totals["duration"] * (1 + 1e-9)


def test_lying_about_usage_has_no_effect_on_what_is_counted(harness: Harness) -> None:
    def lie(_request: Request, answer: Request) -> Request:
        return answer | {"usage": {"completion_tokens": 5120}}

    with Endpoint(lie) as endpoint:
        outcome = harness(endpoint)
    assert outcome.status == 0
    assert outcome.read("summary.json")["total_output_tokens"] == 5 * OUTPUT_TOKENS
    assert outcome.read("summary.json")["usage_disagreements"] == 5
    assert outcome.read("decode_outputs.jsonl")[0]["reported_completion_tokens"] == 5120


def test_audited_ids_are_those_of_the_timed_replies_and_nothing_is_decoded_twice(harness: Harness) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint)
        decodes = [request for request in endpoint.requests if Kind.decode(request)]
    outputs = outcome.read("decode_outputs.jsonl")
    assert len(decodes) == 2 + 5
    assert [one["prompt_token_ids"] for one in outputs] == [request["prompt"] for request in decodes[2:]]
    for one in outputs:
        ids = continuation(one["prompt_token_ids"][-1], OUTPUT_TOKENS)
        assert one["completion_token_ids"] == ids
        assert one["completion_token_sha256"] == hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()


def test_warm_up_looks_like_the_timed_requests_but_shares_no_prompt_with_them(harness: Harness) -> None:
    with Endpoint() as endpoint:
        harness(endpoint)
        decodes = [request for request in endpoint.requests if Kind.decode(request)]
        connections = endpoint.connections
    prompts = [request.pop("prompt") for request in decodes]
    assert all(request == decodes[0] for request in decodes)
    assert len({tuple(prompt) for prompt in prompts}) == len(prompts)
    assert connections == 1


def test_ppl_is_exp_of_summed_nll_over_summed_tokens_without_the_decoys(harness: Harness) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint)
    found = outcome.read("ppl_summary.json")
    assert found["ppl"] == pytest.approx(math.exp(0.1))
    assert found["num_tokens"] == 60
    assert found["num_decoys"] == len(outcome.read("ppl_decoys.jsonl")) == 1
    assert found["decoy_gap_nats"] > 1
    assert found["within_cap"] is True


@pytest.mark.parametrize(("cap", "within"), [(1.0, False), (math.exp(0.1) + 1e-9, True), (None, None)])
def test_ppl_over_its_cap_is_a_measurement_not_a_failure(harness: Harness, cap: float | None, within: Any) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint, ppl_cap=cap)
    assert outcome.status == 0
    assert outcome.read("summary.json")["ppl_within_cap"] is within


def test_run_without_references_has_no_ppl(harness: Harness) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint, references=None)
    assert outcome.status == 0
    assert outcome.read("summary.json")["ppl"] is None
    assert not (outcome.folder / "ppl_summary.json").exists()


def test_progress_counts_every_stage_to_its_end(harness: Harness) -> None:
    with Endpoint() as endpoint:
        outcome = harness(endpoint)
    last = {line["stage"]: (line["done"], line["total"]) for line in outcome.progress}
    assert last == {"warmup": (2, 2), "benchmark": (5, 5), "ppl": (7, 7), "chat": (1, 1)}


def test_harness_measures_over_a_unix_socket(harness: Harness, tmp_path: Path) -> None:
    with Endpoint(uds=tmp_path / "s"):
        outcome = harness(uds=str(tmp_path / "s"))
    assert outcome.status == 0


def test_same_seed_asks_the_same_and_another_seed_does_not(harness: Harness) -> None:
    asked = []
    for seed in (7, 7, 8):
        with Endpoint() as endpoint:
            harness(endpoint, seed=seed)
            asked.append(endpoint.requests)
    assert asked[0] == asked[1] != asked[2]


def test_keep_alive_that_the_server_ends_between_requests_costs_nothing(harness: Harness) -> None:
    def hang_up_after_each(_request: Request, answer: Request) -> Callable[[Any], None]:
        return lambda handler: handler.send(json.dumps(answer).encode())

    with Endpoint(hang_up_after_each) as endpoint:
        outcome = harness(endpoint)
    assert outcome.status == 0
