"""What must not be served is refused by a real start: one sentence, and vLLM, here a fake, is never run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runner.stack.bake.checkpoints import arrays, text_config, towers, write_checkpoint
from tests.runner.stack.launcher.starting import free_port, start_on_fake

DRAFTER = {"speculation.tokens": 3, "speculation.drafter.uri": "drafter"}


def refusal(folder: Path, profile: str, overrides: dict[str, Any], **rest: Any) -> str:
    """Start it; return what it said, once it ended with a status of 1 and without vLLM."""
    process = start_on_fake(folder, free_port(), profile, {"weights.uri": "model", **overrides}, **rest)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "serving with" not in said
    assert not (folder / "cache/serving-record.json").exists()
    return str(said)


def model(folder: Path, **config: Any) -> Path:
    """Write a small text model and a drafter of another window beside it."""
    drafter = {"model_type": "gemma4_assistant", "text_config": {"model_type": "gemma4_text", "sliding_window": 192}}
    (folder / "drafter").mkdir()
    (folder / "drafter/config.json").write_text(json.dumps(drafter))
    (folder / "drafter/model.safetensors").write_bytes(b"weights")
    return write_checkpoint(folder / "model", text_config() | config, arrays(text_config()))


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({**DRAFTER, "speculation.tokens": 8}, "8 drafted tokens are more than vLLM's split attention takes"),
        (DRAFTER, "and its drafter's 192: the drafter would read blocks that are freed already"),
        ({"engine.limit-mm-per-prompt": {"image": 0}}, "drops image"),
    ],
)
def test_profile_or_its_drafter(tmp_path: Path, overrides: dict[str, Any], sentence: str) -> None:
    model(tmp_path)
    assert sentence in refusal(tmp_path, "exact-mtp", {"speculation.tokens": 0, **overrides})


def test_keep_set_over_a_tied_head(tmp_path: Path) -> None:
    model(tmp_path, tie_word_embeddings=True, lm_head_keep_ids=[1, 2])
    assert "the head is tied to the embedding; untie it first" in refusal(tmp_path, "exact-bf16", {})


def test_checkpoint_that_lost_a_tower(tmp_path: Path) -> None:
    config = {"model_type": "gemma4", "text_config": text_config(), "vision_config": {"hidden_size": 1}}
    write_checkpoint(tmp_path / "model", config, arrays(text_config(), prefix="model.language_model.") | towers())
    assert "its audio tower was taken out" in refusal(tmp_path, "exact-bf16", {})


def test_environment_that_replays_the_benchmark(tmp_path: Path) -> None:
    model(tmp_path)
    assert "that is cheating" in refusal(tmp_path, "exact-bf16", {}, env={"PRECACHE_BENCH": "1"})


def test_gpus_profile_without_the_library_that_its_levers_need(tmp_path: Path) -> None:
    model(tmp_path)
    said = refusal(tmp_path, "exact-bf16", {}, machine="a10g")
    assert "vLLM is not installed beside paddock-stack" in said
