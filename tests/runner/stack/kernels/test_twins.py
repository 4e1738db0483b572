"""Kernels hold against their fp32 references on the CPU, and their Triton code, interpreted, against the twins."""

from typing import Any

import pytest

from tests.runner.stack.serving.zygote import Zygote


@pytest.mark.vllm
@pytest.mark.parametrize(
    "task",
    [
        "ties",
        "packing",
        "quantising",
        "argmax_twin",
        "argmax_breaks_ties_to_the_left",
        "argmax_is_vllms",
        "argmax_in_bfloat16_is_vllms",
        "argmax_is_a_whole_head_when_all_centroids_are_chosen",
        "operators_have_shapes",
        "head_twins",
    ],
)
def test_twin(zygote: Zygote, task: str) -> None:
    zygote.call(f"tests.runner.stack.kernels.twins:{task}")


@pytest.mark.vllm
def test_triton_interpreted_is_the_twin(zygote: Zygote, interpreter: dict[str, Any]) -> None:
    zygote.call("tests.runner.stack.kernels.twins:triton_is_the_twin", **interpreter)
