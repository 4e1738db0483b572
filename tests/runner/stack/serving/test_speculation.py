"""Speculation changes how fast text comes, never which."""

from pathlib import Path

import pytest

from tests.runner.stack.serving.asked import served
from tests.runner.stack.serving.zygote import Zygote

pytestmark = pytest.mark.vllm


@pytest.mark.parametrize("target", ["text", "multimodal"])
def test_three_drafted_tokens_give_the_same_text_as_none(zygote: Zygote, checkpoints: Path, target: str) -> None:
    speculating = {"method": "mtp", "model": str(checkpoints / f"drafter-{target}"), "num_speculative_tokens": 3}
    fast = served(zygote, checkpoints / target, max_tokens=64, options={"speculative_config": speculating})
    assert fast["tokens"] == served(zygote, checkpoints / target, max_tokens=64)["tokens"]
    assert fast["drafts"]["drafted"] > fast["drafts"]["accepted"] > 0
