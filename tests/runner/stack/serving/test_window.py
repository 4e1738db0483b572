"""A narrower sliding window means the same to vLLM as to transformers, in the target and in its drafter."""

from pathlib import Path

import pytest

from tests.runner.stack.serving.asked import LONG, bake, reference, served
from tests.runner.stack.serving.zygote import Zygote

pytestmark = pytest.mark.vllm

WINDOW = 16


def test_baked_window_is_that_of_transformers_and_keeps_speculation_exact(
    zygote: Zygote, checkpoints: Path, tmp_path: Path
) -> None:
    assert len(LONG) > WINDOW
    drafters = ("--drafter", checkpoints / "drafter-text", "--drafter-out", tmp_path / "drafter")
    bake("set-window", checkpoints / "text", tmp_path / "text", "--window", WINDOW, *drafters)
    expected = reference(zygote, tmp_path / "text")["tokens"]
    assert expected != reference(zygote, checkpoints / "text")["tokens"]
    assert served(zygote, tmp_path / "text")["tokens"] == expected
    speculating = {"method": "mtp", "model": str(tmp_path / "drafter"), "num_speculative_tokens": 3}
    assert served(zygote, tmp_path / "text", options={"speculative_config": speculating})["tokens"] == expected
