"""Centroids are chosen in the order of torch's top-k on a GPU, ties included."""

from typing import Any

import pytest

from tests.runner.stack.serving.zygote import TaskFailed, Zygote

TASKS = "tests.runner.stack.kernels.choosing"


@pytest.mark.vllm
@pytest.mark.parametrize("task", ["twin_is_torchs", "twin_is_top_k_without_ties"])
def test_choice(zygote: Zygote, task: str) -> None:
    zygote.call(f"{TASKS}:{task}")


@pytest.mark.vllm
def test_other_scores_are_refused(zygote: Zygote) -> None:
    with pytest.raises(TaskFailed, match=r"no 5 best columns are chosen of torch\.float32 scores of shape \(2, 200\)"):
        zygote.call(f"{TASKS}:other_scores_do_not_fit")


@pytest.mark.vllm
def test_triton_interpreted_is_the_twin(zygote: Zygote, interpreter: dict[str, Any]) -> None:
    zygote.call(f"{TASKS}:triton_is_the_twin", **interpreter)
