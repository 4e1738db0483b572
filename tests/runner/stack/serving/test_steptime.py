"""The probe times the steps and drafts of a real engine into a file."""

import json
from pathlib import Path

import pytest

from tests.runner.stack.serving.asked import SHORT
from tests.runner.stack.serving.zygote import Zygote

pytestmark = pytest.mark.vllm


def test_steps_and_drafts_of_an_engine_are_timed(zygote: Zygote, checkpoints: Path, tmp_path: Path) -> None:
    out = tmp_path / "steptime.json"
    speculating = {"method": "mtp", "model": str(checkpoints / "drafter-text"), "num_speculative_tokens": 3}
    zygote.call(
        "tests.runner.stack.serving.generation:timed",
        folder=str(checkpoints / "text"),
        prompts=[SHORT],
        max_tokens=32,
        options={"speculative_config": speculating},
        env={"PADDOCK_STEPTIME": str(out)},
    )
    told = json.loads(out.read_text())
    assert told["clock"] == "perf_counter"
    assert set(told["steps"]) == {"execute_model", "sample_tokens", "propose"}
    steps, drafts = told["steps"]["execute_model"], told["steps"]["propose"]
    assert 8 <= drafts["calls"] <= steps["calls"] <= 34
    for kind in told["steps"].values():  # how many of the calls its allowance pays for is the machine's affair
        assert 1 <= kind["count"] <= kind["calls"]
        assert 0 < kind["p50_ms"] <= kind["p90_ms"] <= kind["p99_ms"] <= kind["max_ms"]
