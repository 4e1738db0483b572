"""The oracle that drafts in the H200's measurements, with a drafter of zeros in the place of vLLM's."""

import pytest

from tests.runner.stack.serving.zygote import Zygote


@pytest.mark.vllm
@pytest.mark.parametrize(
    "task", ["answers_with_what_follows_the_newest_token", "comparison_finds_the_first_difference"]
)
def test_oracle(zygote: Zygote, task: str) -> None:
    zygote.call(f"tests.runner.stack.benches.tasks:{task}")
