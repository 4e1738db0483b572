"""From start to stop with a fake in vLLM's place: readiness, record, faults."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from paddock_stack.launcher.record import LINE
from paddock_stack.launcher.weights import find
from paddock_stack.profiles.schema import Weights
from tests.conftest import eventually
from tests.runner.stack.bake.checkpoints import arrays, text_config, write_checkpoint
from tests.runner.stack.launcher.starting import free_port, start_on_fake, status_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", text_config(), arrays(text_config()))


def test_strangers_are_let_in_once_the_record_is_written(model: Path, tmp_path: Path) -> None:
    port = free_port()
    process = start_on_fake(tmp_path, port, "exact-bf16", {"weights.uri": str(model)})
    try:
        seen: list[int | None] = []
        eventually(lambda: seen.append(status_of(port)) or seen[-1] == 200)
        told = json.loads((tmp_path / "cache/serving-record.json").read_text())
        assert set(seen) <= {None, 503, 200}
        assert told["profile"] == "exact-bf16"
        assert told["resolved"]["attention_backends"] == ["TRITON_ATTN"]
        assert told["resolved"]["linear_kernels"] == ["MarlinLinearKernel"]
        assert told["resolved"]["async_scheduling"] is True
        assert told["resolved"]["capture_sizes"] == [1, 2, 4, 8]
        assert (told["warm_up"]["prompts"], told["warm_up"]["scored_prompts"]) == (6, 1)
        assert 45 <= told["warm_up"]["shortest_tokens"] < told["warm_up"]["longest_tokens"] <= 165
        assert len(told["model"]["sha256"]) == len(told["warm_up"]["prompts_sha256"]) == 64
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "EngineDeadError" not in said
    told = [json.loads(line[len(LINE) :]) for line in said.splitlines() if line.startswith(LINE)]
    assert [each["acceptance"] is None for each in told] == [True, False]
    assert told[1] == json.loads((tmp_path / "cache/serving-record.json").read_text())
    counted = told[1]["acceptance"]
    assert (counted["accepted_share_by_position"], counted["tokens_per_step"]) == ([0.8, 0.4], 2.2)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("dies", "vLLM ended with status 7 before it was ready"),
        ("refuses", "/v1/chat/completions answered 500 during the warm-up"),
        ("short", "answered 15 tokens of 16 in the warm-up"),
    ],
)
def test_fault_before_readiness_ends_the_start_and_leaves_no_server(
    model: Path, tmp_path: Path, fault: str, sentence: str
) -> None:
    port = free_port()
    process = start_on_fake(tmp_path, port, "exact-bf16", {"weights.uri": str(model)}, fault)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert sentence in said
    assert status_of(port) is None
    assert not (tmp_path / "cache/serving-record.json").exists()


def test_weights_of_another_hash_are_never_served(model: Path, tmp_path: Path) -> None:
    overrides = {"weights.uri": str(model), "weights.sha256": "0" * 64}
    process = start_on_fake(tmp_path, free_port(), "exact-bf16", overrides)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "which pins it" in said
    assert "serving with" not in said


def test_start_says_what_is_not_pinned_and_that_there_are_no_towers(model: Path, tmp_path: Path) -> None:
    process = start_on_fake(tmp_path, free_port(), "exact-bf16", {"weights.uri": str(model)}, "dies")
    said, _ = process.communicate(timeout=60)
    digest = find(Weights(str(model)), tmp_path, tmp_path).sha256
    assert f"{model} is pinned by nothing; weights.sha256={digest} pins it\n" in said
    assert "of text alone" in said
    pinned = {"weights.uri": str(model), "weights.sha256": digest}
    again, _ = start_on_fake(tmp_path, free_port(), "exact-bf16", pinned, "dies").communicate(timeout=60)
    assert "pinned by nothing" not in again
