"""The installed plugin is found by vLLM, puts its levers in once, and ends the start where it cannot."""

from pathlib import Path

import pytest

from tests.runner.stack.conftest import SERVER_ENV
from tests.runner.stack.serving.zygote import ROOT, TaskFailed, Zygote

pytestmark = pytest.mark.vllm

TASKS = "tests.runner.stack.plugin.registering"


def test_vllm_loads_the_installed_plugin_by_its_entry_point(zygote: Zygote) -> None:
    told = zygote.call(f"{TASKS}:loaded", env={"VLLM_PLUGINS": "paddock_stack"})
    assert told == {
        "Gemma4ForCausalLM": "paddock_stack.models.gemma4:PrunedGemma4",
        "CUSTOM": "paddock_stack.attention.two_d.TwoDAttentionBackend",
        "onednn_mm": "contiguous_onednn_mm",
    }


def test_installed_stack_is_that_of_the_sources() -> None:
    packages = next(SERVER_ENV.glob("lib/python3*/site-packages/paddock_stack"), None)
    if packages is None:
        pytest.skip(f"THE SERVING STACK IS NOT INSTALLED: {SERVER_ENV} (make server-env)")
    sources = ROOT / "runner/stack/src/paddock_stack"
    assert files(packages) == files(sources), "make server-env"


def files(folder: Path) -> dict[Path, bytes]:
    """Return what lies in `folder`, compiled files apart."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_second_call_changes_nothing(zygote: Zygote) -> None:
    assert zygote.call(f"{TASKS}:twice")


def test_switch_that_is_none_ends_the_start(zygote: Zygote) -> None:
    with pytest.raises(TaskFailed, match="PADDOCK_FUSED_ARGMAX must be 0 or 1, not 'on'"):
        zygote.call(f"{TASKS}:twice", env={"PADDOCK_FUSED_ARGMAX": "on"})


def test_custom_attention_is_the_one_that_the_switch_names(zygote: Zygote) -> None:
    two_d = "paddock_stack.attention.two_d.TwoDAttentionBackend"
    meant = {"": two_d, "2d": two_d, "fixed_split": "paddock_stack.attention.fixed_split.FixedSplitBackend"}
    for told, backend in meant.items():
        environment = {"VLLM_PLUGINS": "paddock_stack", "PADDOCK_ATTENTION": told}
        assert zygote.call(f"{TASKS}:loaded", env=environment)["CUSTOM"] == backend
    with pytest.raises(TaskFailed, match="PADDOCK_ATTENTION must be 2d or fixed_split, not '3d'"):
        zygote.call(f"{TASKS}:twice", env={"PADDOCK_ATTENTION": "3d"})


def test_products_are_not_forgotten_in_silence_where_there_is_no_gpu(zygote: Zygote) -> None:
    with pytest.raises(TaskFailed, match="PADDOCK_SKINNY is 1, but the products for few tokens need a GPU"):
        zygote.call(f"{TASKS}:twice", env={"PADDOCK_SKINNY": "1"})


def test_vllm_of_another_shape_ends_the_start_in_a_sentence(zygote: Zygote) -> None:
    with pytest.raises(
        TaskFailed, match=r"UnknownLibrary: the pruned head does not fit vLLM 0\.32\.0: there is no vllm"
    ):
        zygote.call(f"{TASKS}:in_another_vllm")


def test_gpu_machine_gets_the_fused_argmax_and_it_can_be_switched_off(zygote: Zygote) -> None:
    assert zygote.call(f"{TASKS}:on_a_gpu") == "fused_top_tokens"
    assert zygote.call(f"{TASKS}:on_a_gpu", env={"PADDOCK_FUSED_ARGMAX": "0"}) == "get_top_tokens"


def test_gpu_machine_that_is_told_so_gets_both_products(zygote: Zygote) -> None:
    told = zygote.call(f"{TASKS}:with_our_products", env={"PADDOCK_SKINNY": "1"})
    assert told == ["SkinnyLinearKernel", "unquantized_gemm"]
    stock = zygote.call(f"{TASKS}:with_our_products", env={"PADDOCK_SKINNY": "0"})
    assert not set(stock) & set(told)


def test_gpu_machine_that_is_told_so_holds_rows_of_norms_in_registers(zygote: Zygote) -> None:
    told = zygote.call(f"{TASKS}:with_persistent_norms", env={"PADDOCK_PERSISTENT_NORMS": "1"})
    stock = zygote.call(f"{TASKS}:with_persistent_norms", env={"PADDOCK_PERSISTENT_NORMS": "0"})
    assert (told["rules"], stock["rules"]) == ("PersistentNorms", "InductorChoices")
    assert (told["key"], stock["key"]) == ("paddock_stack.persistent_norms.8192", None)
    assert told["held"] == stock["held"] | {
        "2560": [True, *stock["held"]["2560"][1:]],
        "8192": [True, *stock["held"]["8192"][1:]],
    }
    assert [stock["held"][length][0] for length in ("256", "2560", "8192", "8193")] == [True, False, False, False]


def test_norms_are_not_left_as_they_are_in_silence(zygote: Zygote) -> None:
    with pytest.raises(TaskFailed, match="PADDOCK_PERSISTENT_NORMS is 1, but only kernels for a GPU"):
        zygote.call(f"{TASKS}:twice", env={"PADDOCK_PERSISTENT_NORMS": "1"})
    with pytest.raises(
        TaskFailed,
        match=r"UnknownLibrary: the rule for norms in registers does not fit torch 2\.[^:]+: there is no torch",
    ):
        zygote.call(f"{TASKS}:in_another_torch")


def test_wrapper_of_somebody_else_is_not_taken_for_ours(zygote: Zygote) -> None:
    assert zygote.call(f"{TASKS}:beside_anothers_wrappers") == ["contiguous_onednn_mm", "unquantized_gemm"]


def test_two_d_backend_offers_no_segment_buffers(zygote: Zygote) -> None:
    assert zygote.call(f"{TASKS}:two_d_buffers") == {
        "name": "CUSTOM",
        "buffers": [None, None, None],
        "narrow_sequences": 0,
        "stock_buffers": [False, False, False],
    }
