"""Kernels hold against their fp32 references on the CPU; their Triton code against the twins where Triton is."""

import os

import pytest

from tests.runner.stack.conftest import SERVER_ENV
from tests.runner.stack.serving.zygote import Zygote

TRITON = os.environ.get("PADDOCK_TEST_TRITON", "")  # a folder that holds the package triton


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
        "choice_is_top_k",
        "fused_choice_is_vllms",
        "argmax_is_a_whole_head_when_all_centroids_are_chosen",
        "operators_have_shapes",
        "head_twins",
    ],
)
def test_twin(zygote: Zygote, task: str) -> None:
    zygote.call(f"tests.runner.stack.kernels.twins:{task}")


@pytest.mark.vllm
def test_triton_interpreted_is_the_twin(zygote: Zygote) -> None:
    if not TRITON and not list(SERVER_ENV.glob("lib/python3*/site-packages/triton/__init__.py")):
        pytest.skip("TRITON IS ABSENT: name a folder that holds it in PADDOCK_TEST_TRITON")
    zygote.call("tests.runner.stack.kernels.twins:triton_is_the_twin", path=TRITON, env={"TRITON_INTERPRET": "1"})
