"""The products for few tokens read their layouts right, refuse the rest, and leave Marlin's state to Marlin."""

import pytest

from tests.runner.stack.serving.zygote import Zygote


@pytest.mark.vllm
@pytest.mark.parametrize(
    "task",
    [
        "emulated_product_is_exact",
        "emulation_notices_a_wrong_word",
        "rows_are_laid_out_piecewise",
        "scratch_is_fp32_whatever_torchs_default",
        "product_refuses_what_it_cannot_read",
        "layers_that_suit_are_taken",
        "operator_serves_few_tokens_itself_and_hands_more_to_marlin",
        "operator_is_what_torch_expects",
        "unknown_weights_are_refused",
        "vllm_prefers_it_and_names_compiled_models_anew",
    ],
)
def test_skinny(zygote: Zygote, task: str) -> None:
    zygote.call(f"tests.runner.stack.skinny.tasks:{task}")


@pytest.mark.vllm
@pytest.mark.parametrize(
    "task",
    [
        "emulated_product_of_bf16_weights_is_exact",
        "bf16_weights_that_the_kernel_reads_right_suit",
        "bf16_product_refuses_what_it_would_read_wrong",
        "layers_of_bf16_weights_that_suit_are_taken",
        "bf16_operator_is_what_torch_expects",
    ],
)
def test_skinny_with_bf16_weights(zygote: Zygote, task: str) -> None:
    zygote.call(f"tests.runner.stack.skinny.tasks_bf16:{task}")
