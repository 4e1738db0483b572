"""Attention over fixed segments is attention, and a row's bits are the same in any company."""

from typing import Any

import pytest

from paddock_stack.attention.fixed_split_plan import (
    NARROW,
    TOKENS,
    WIDE,
    CannotSplit,
    Cut,
    Layer,
    cut_for,
    is_ours,
    rows,
    scratch_rows,
    slots,
)
from tests.runner.stack.serving.zygote import TaskFailed, Zygote

CACHES, BACKENDS = (f"tests.runner.stack.attention.{name}" for name in ("caches", "backends"))
SLIDING, FULL = Layer(8, 2, 256, 512), Layer(8, 2, 512, 0)


@pytest.mark.parametrize("cut", [WIDE, NARROW, Cut(16, 16, 4)])
@pytest.mark.parametrize("window", [0, 1, 2, 40, 512, 5000])
def test_slots_are_the_most_segments_that_eight_rows_touch(cut: Cut, window: int) -> None:
    most = 0
    for length in range(TOKENS, 1200):
        low = max(length - TOKENS - window + 1, 0) if window else 0
        most = max(most, (length - 1) // cut.segment - low // cut.segment + 1)
    assert slots(cut, window, 1199) == most


@pytest.mark.parametrize(("group", "meant"), [(1, 16), (2, 16), (3, 32), (4, 32), (5, 64), (8, 64)])
def test_program_has_the_same_rows_for_any_tokens(group: int, meant: int) -> None:
    assert rows(group) == meant >= TOKENS * group


@pytest.mark.parametrize(
    ("longest_query", "is_plain", "ours"),
    [(1, True, True), (8, True, True), (9, True, False), (0, True, False), (1, False, False), (8, False, False)],
)
def test_batches_of_the_fixed_split(longest_query: int, is_plain: bool, ours: bool) -> None:
    assert is_ours(longest_query, is_plain=is_plain) is ours


def test_scratch_is_bounded() -> None:
    assert SLIDING.cells(4096) == 8 * 10
    assert FULL.cells(4096) == 8 * 128
    assert scratch_rows(FULL.cells(4096), 512, 1) == 8 * 8 * 128
    with pytest.raises(CannotSplit, match="would need 1028 MiB of scratch for 64 sequences, over its limit of 1024"):
        scratch_rows(FULL.cells(4096), 512, 64)
    with pytest.raises(CannotSplit, match="heads of a power of two from 16 to 512, not 80"):
        cut_for(80)


@pytest.mark.vllm
@pytest.mark.parametrize("task", ["reference_is_torchs", "twin_is_attention"])
def test_twin(zygote: Zygote, task: str) -> None:
    zygote.call(f"{CACHES}:{task}")


@pytest.mark.vllm
def test_kernels_are_the_twin(zygote: Zygote, interpreter: dict[str, Any]) -> None:
    zygote.call(f"{CACHES}:kernels_are_the_twin", lengths=[1, 17, 57], **interpreter)


@pytest.mark.vllm
def test_row_has_the_same_bits_alone_and_among_eight(zygote: Zygote, interpreter: dict[str, Any]) -> None:
    zygote.call(f"{CACHES}:rows_have_the_same_bits", lengths=[17, 57], **interpreter)


@pytest.mark.vllm
def test_padding_is_left_alone(zygote: Zygote, interpreter: dict[str, Any]) -> None:
    zygote.call(f"{CACHES}:padding_is_left_alone", **interpreter)


@pytest.mark.vllm
@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "arguments"),
    [
        ("kernels_at_the_models_sizes", {}),
        ("kernels_are_the_twin", {"lengths": [2, 8, 15, 16, 31, 32, 33, 40, 41, 47, 48, 55, 56, 64, 65, 72, 130]}),
        ("rows_have_the_same_bits", {"lengths": [9, 40, 48, 56, 65, 130]}),
    ],
)
def test_every_edge(zygote: Zygote, interpreter: dict[str, Any], task: str, arguments: dict[str, Any]) -> None:
    zygote.call(f"{CACHES}:{task}", **arguments, **interpreter)


@pytest.mark.vllm
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, ""),
        ({"head_size": 512, "sliding_window": None, "kv_sharing_target_layer_name": "layers.1"}, ""),
        ({"scale": 0.0625}, "the fixed split takes a scale of 1.0, not 0.0625"),
        ({"logits_soft_cap": 30.0}, "the fixed split has no soft cap, and the layer asks for 30.0"),
        ({"kv_cache_dtype": "fp8"}, "the fixed split reads keys and values in bfloat16, not fp8"),
        ({"alibi_slopes": [0.5] * 8, "chunk_lookback": 1}, "the fixed split knows no position slopes and no chunks"),
        ({"attn_type": "encoder_only"}, "the fixed split serves causal attention over a cache, not an encoder's"),
        ({"head_size": 80}, "the fixed split takes heads of a power of two from 16 to 512, not 80"),
    ],
)
def test_layer_that_it_cannot_serve_is_refused(zygote: Zygote, given: dict[str, Any], sentence: str) -> None:
    assert zygote.call(f"{BACKENDS}:refusals", given=given) == sentence


@pytest.mark.vllm
def test_batch_of_few_tokens_goes_to_the_kernels_and_any_other_to_vllm(zygote: Zygote) -> None:
    # Keys before values in every block, or beside them in every row of one head.
    places = {
        "0.23": [2 * 16384 + 512 + 256 + 3, 2 * 16384 + 8192 + 512 + 256 + 3],
        "0.32": [2 * 16384 + 8192 + 512 + 3, 2 * 16384 + 8192 + 512 + 256 + 3],
    }
    for release, place in places.items():
        for count in (1, 8):
            handed = {"window": 512, "longest": 4096, "longest_query": count}
            took = zygote.call(f"{BACKENDS}:paths", longest_query=count, told={}, release=release)
            assert took == ["fixed split", [5, 16, 2, 256], place, handed]
    assert zygote.call(f"{BACKENDS}:paths", longest_query=9, told={}) == ["vLLM"]
    others = {"mm_prefix_range_tensor": [1], "use_cascade": True, "causal": False, "rswa_window": 512}
    for name, value in others.items():
        assert zygote.call(f"{BACKENDS}:paths", longest_query=1, told={name: value}) == ["vLLM"]
    with pytest.raises(TaskFailed, match="960 partial results do not fit the fixed split's scratch for 640"):
        zygote.call(f"{BACKENDS}:paths", longest_query=8, told={"num_actual_tokens": 12, "seq_lens": [40, 4]})


@pytest.mark.vllm
@pytest.mark.parametrize("window", [None, 40])
def test_answers_from_every_layout_of_vllms_own_cache(
    zygote: Zygote, interpreter: dict[str, Any], window: int | None
) -> None:
    zygote.call(f"{BACKENDS}:answers_from_vllms_own_cache", window=window, **interpreter)


@pytest.mark.vllm
def test_scratch_is_there_before_graphs_and_vllms_is_gone(zygote: Zygote) -> None:
    rooms = [8 * 8 * 64 * 256, 8 * 8 * 64, 8 * 8 * 64]
    assert zygote.call(f"{BACKENDS}:builders", sequences=1) == {"rooms": rooms, "vllms": [None] * 3}
    assert zygote.call(f"{BACKENDS}:names") == ["CUSTOM", "FixedSplitImpl", "FixedSplitMetadataBuilder"]


@pytest.mark.vllm
def test_engine_that_it_cannot_serve_is_refused(zygote: Zygote) -> None:
    zygote.call(f"{BACKENDS}:builder_with", dtype="bfloat16", is_fast_prefill=False)
    with pytest.raises(TaskFailed, match=r"reads keys and values in bfloat16, not torch\.float16"):
        zygote.call(f"{BACKENDS}:builder_with", dtype="float16", is_fast_prefill=False)
    with pytest.raises(TaskFailed, match="goes without kv_sharing_fast_prefill"):
        zygote.call(f"{BACKENDS}:builder_with", dtype="bfloat16", is_fast_prefill=True)


@pytest.mark.vllm
def test_vllm_of_another_shape_is_refused_in_a_sentence(zygote: Zygote) -> None:
    sentence = r"the fixed split of attention does not fit vLLM 0\.32\.0: .* no longer mentions .* or transpose, split"
    with pytest.raises(TaskFailed, match=sentence):
        zygote.call(f"{BACKENDS}:refused_by_its_guard", unsaid="split")
