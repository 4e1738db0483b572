"""Everything a bake refuses: one sentence, and neither an output nor an unfinished folder stays behind."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.checkpoint import open_checkpoint
from paddock_stack.bake.composing import How, compose, write_composed
from paddock_stack.bake.needed_tokens import needed_tokens
from paddock_stack.bake.steps.catalogue import read_step, read_steps
from paddock_stack.bake.steps.drop_layers import check
from paddock_stack.refusals import Refused
from tests.runner.stack.bake.checkpoints import KINDS, SHARED, VOCAB, Arrays, arrays, text_config, write_checkpoint
from tests.runner.stack.bake.test_baking import Silent

ALL = list(range(VOCAB))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))


def refused(source: Path, *steps: dict[str, Any], saying: str) -> None:
    """Fail unless baking `steps` is refused with `saying`, and leaves nothing beside `source`."""
    before = sorted(source.parent.iterdir())
    with pytest.raises(Refused, match=saying) as refusal:
        bake([read_step(step) for step in steps], Route(source, source.parent / "out"), make_progress=Silent)
    assert "\n" not in str(refusal.value)
    assert sorted(source.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("dropped", "saying"),
    [
        ([4], "layer 4 can't go: it is the last sliding_attention layer"),
        ([5], "layer 5 can't go: it is the last full_attention layer"),
        ([11], "last layer that stays must be full_attention"),
        ([12], "layers 0 to 11"),
        ([-1], "layers 0 to 11"),
        ([1, 1], "different layer numbers"),
        ([], "at least one"),
    ],
)
def test_layers_that_others_need_stay(source: Path, dropped: list[int], saying: str) -> None:
    refused(source, {"step": "drop-layers", "layers": dropped}, saying=saying)


def test_a_shared_kind_without_a_source_is_refused() -> None:
    text = text_config(layer_types=["sliding_attention"] * 3 + ["full_attention"] * 2, num_kv_shared_layers=2)
    with pytest.raises(Refused, match="no layer before the shared ones is full_attention"):
        check(text, (0,))


def test_a_keep_set_needs_a_head_of_its_own(source: Path, tmp_path: Path) -> None:
    (tmp_path / "keep.json").write_text(json.dumps(ALL))
    refused(source, {"step": "prune-head", "keep": tmp_path / "keep.json"}, saying="untie-head comes first")


@pytest.mark.parametrize(
    ("ids", "saying"),
    [
        ([*ALL, 5], "token 5 more than once"),
        ([*ALL, VOCAB], f"no token id below {VOCAB}"),
        ([-1, *ALL], "-1, which is no token id"),
        ([True, *ALL[2:]], "True, which is no token id"),
        ([1.0, *ALL[2:]], "1.0, which is no token id"),
        ([], "is empty"),
        ({"ids": ALL}, "neither a list"),
        (ALL[8:], "lacks 8 of the special tokens, such as 0"),
        (ALL[:200], "lacks 64 of the bytes tokens, such as 200"),
        (ALL[:300], "lacks 1 of the template tokens, such as 300"),
    ],
)
def test_keep_sets_that_break_a_model_are_refused(source: Path, tmp_path: Path, ids: Any, saying: str) -> None:
    (tmp_path / "keep.json").write_text(json.dumps(ids))
    steps = {"step": "untie-head"}, {"step": "prune-head", "keep": tmp_path / "keep.json"}
    refused(source, *steps, saying=saying)


def test_multimodal_tokens_are_needed_where_there_are_towers(source: Path) -> None:
    config = {"model_type": "gemma4", "text_config": text_config(), "vision_config": {}, "image_token_id": 310}
    assert needed_tokens(source, config | {"audio_config": {"hidden_size": 4}})["multimodal"] == {310}
    assert needed_tokens(source, config)["multimodal"] == {310}
    assert needed_tokens(source, text_config())["multimodal"] == set()


def test_a_pruned_head_can_t_regain_tokens(source: Path, tmp_path: Path) -> None:
    for name, ids in {"small": ALL[:305], "large": ALL[:310]}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(ids))
    steps = [{"step": "prune-head", "keep": tmp_path / f"{name}.json"} for name in ("small", "large")]
    refused(source, {"step": "untie-head"}, *steps, saying="no row for token 305")


@pytest.mark.parametrize(
    ("step", "saying"),
    [
        ({"step": "untie-head", "bits": "3"}, "4, 8 or none"),
        ({"step": "untie-head", "group_size": 128}, "64 columns can't be quantised"),
        ({"step": "quantize", "bits": 3}, "4 or 8 bits, not 3"),
        ({"step": "quantize", "modules": ["brain"]}, "not brain"),
        ({"step": "quantize", "modules": "head"}, "untie-head gives it weights of its own first"),
        ({"step": "regroup", "group_size": 16}, "nothing to regroup"),
        ({"step": "dequant-ple-gate"}, "none to dequantise"),
        ({"step": "set-window", "window": 32}, "needs a drafter"),
        ({"step": "set-window", "window": 0, "without_drafter": True}, "not between 1"),
        ({"step": "set-centroid-top-k", "top_k": 8}, "changes the drafter, but none was given"),
    ],
)
def test_steps_that_mean_nothing_here_are_refused(source: Path, step: dict[str, Any], saying: str) -> None:
    refused(source, step, saying=saying)


@pytest.mark.parametrize(
    ("step", "saying"),
    [
        ({"step": "melt"}, "there is no step 'melt'"),
        ({}, "there is no step None"),
        ({"step": "drop-layers"}, "drop-layers needs layers"),
        ({"step": "drop-layers", "layers": "1", "depth": 3}, "does not know depth"),
        ({"step": "drop-layers", "layers": "1,x"}, "can't take '1,x' for layers"),
        ({"step": "quantize", "group_size": 32.5}, "can't take 32.5 for group_size"),
        ({"step": "quantize", "bits": True}, "can't take True for bits"),
        ({"step": "set-window", "window": 3, "without_drafter": "no"}, "can't take 'no' for without_drafter"),
    ],
)
def test_steps_in_an_unknown_form_are_refused(step: dict[str, Any], saying: str) -> None:
    with pytest.raises(Refused, match=saying):
        read_step(step)


@pytest.mark.parametrize("content", ["{}", "[]", "[1]", "nothing"])
def test_a_steps_file_is_a_list_of_steps(tmp_path: Path, content: str) -> None:
    (tmp_path / "steps.json").write_text(content)
    with pytest.raises(Refused, match="steps file"):
        read_steps(tmp_path / "steps.json")


Change = Callable[[dict[str, Any], Arrays], None]


def _larger_hidden(config: dict[str, Any], weights: Arrays) -> None:
    config["hidden_size"] = 128


def _one_layer_less(config: dict[str, Any], weights: Arrays) -> None:
    config["num_hidden_layers"] -= 1
    config["layer_types"].pop()


def _kinds_of_eleven(config: dict[str, Any], weights: Arrays) -> None:
    config["layer_types"].pop()


def _stale_head_sizes(config: dict[str, Any], weights: Arrays) -> None:
    config["per_layer_config"] = {"02": {"head_dim": 64}}


def _no_down_projection(config: dict[str, Any], weights: Arrays) -> None:
    del weights["model.layers.7.mlp.down_proj.weight"]


def _no_last_norm(config: dict[str, Any], weights: Arrays) -> None:
    del weights["model.norm.weight"]


def _no_norm_of_a_layer(config: dict[str, Any], weights: Arrays) -> None:
    del weights["model.layers.7.post_feedforward_layernorm.weight"]


def _no_norm_of_keys_that_are_read(config: dict[str, Any], weights: Arrays) -> None:
    del weights["model.layers.5.self_attn.k_norm.weight"]


def _odd_dtype(config: dict[str, Any], weights: Arrays) -> None:
    weights["model.layers.7.mlp.down_proj.weight"] = "I32", np.zeros((64, 96), "<i4")


def _head_beside_tie(config: dict[str, Any], weights: Arrays) -> None:
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]


def _other_quantisation(config: dict[str, Any], weights: Arrays) -> None:
    config["quantization_config"] = {"quant_method": "awq"}


def _promised_but_not_packed(config: dict[str, Any], weights: Arrays) -> None:
    group = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "channel"}
    groups = {"group_0": {"targets": ["Linear"], "weights": group}}
    config["quantization_config"] = {"quant_method": "compressed-tensors", "format": "pack-quantized"}
    config["quantization_config"]["config_groups"] = groups


def _asymmetric(config: dict[str, Any], weights: Arrays) -> None:
    _promised_but_not_packed(config, weights)
    config["quantization_config"]["config_groups"]["group_0"]["weights"]["symmetric"] = False


def _experts(config: dict[str, Any], weights: Arrays) -> None:
    config["enable_moe_block"] = True


def _another_model(config: dict[str, Any], weights: Arrays) -> None:
    config["model_type"] = "llama"


def _shared_by_all(config: dict[str, Any], weights: Arrays) -> None:
    config["num_kv_shared_layers"] = len(KINDS)


@pytest.mark.parametrize(
    ("change", "saying"),
    [
        (_larger_hidden, "has the shape .* but config.json makes it"),
        (_one_layer_less, "has 11 layers, but the weights hold model.layers.11"),
        (_kinds_of_eleven, "12 layers but layer_types for 11"),
        (_stale_head_sizes, "layers.5.self_attn.q_proj.weight has the shape"),
        (_no_down_projection, "lack model.layers.7.mlp.down_proj"),
        (_no_last_norm, "the weights lack model.norm.weight, which config.json promises"),
        (_no_norm_of_a_layer, "lack model.layers.7.post_feedforward_layernorm.weight"),
        (_no_norm_of_keys_that_are_read, "lack model.layers.5.self_attn.k_norm.weight"),
        (_odd_dtype, "has the dtype I32"),
        (_head_beside_tie, "ties the head"),
        (_other_quantisation, "quantised as awq"),
        (_promised_but_not_packed, "in floats, but config.json says otherwise"),
        (_asymmetric, "not quantised as symmetric integers"),
        (_experts, "has experts"),
        (_another_model, "no Gemma 4"),
        (_shared_by_all, "shares the keys and values of 12 layers but has 12"),
    ],
)
def test_weights_that_drift_from_their_configuration_are_refused(tmp_path: Path, change: Change, saying: str) -> None:
    config, weights = text_config(), arrays(text_config())
    change(config, weights)
    source = write_checkpoint(tmp_path / "in", config, weights)
    refused(source, {"step": "drop-layers", "layers": [1]}, saying=saying)


def test_norms_of_keys_that_nobody_reads_and_scalars_may_be_missing(tmp_path: Path) -> None:
    weights = arrays(text_config())
    spared = [f"model.layers.{index}.self_attn.k_norm.weight" for index in range(len(KINDS) - SHARED, len(KINDS))]
    for name in (*spared, "model.layers.0.layer_scalar"):
        del weights[name]
    source = write_checkpoint(tmp_path / "in", text_config(), weights)
    bake([read_step({"step": "quantize"})], Route(source, tmp_path / "out"))


@pytest.mark.parametrize("left", [0, 5, 500, -1])
def test_a_truncated_file_is_refused(source: Path, left: int) -> None:
    content = (source / "model.safetensors").read_bytes()
    (source / "model.safetensors").write_bytes(content[:left])
    refused(source, {"step": "drop-layers", "layers": [1]}, saying="truncated")


def test_bytes_beyond_the_last_tensor_are_refused(source: Path) -> None:
    with (source / "model.safetensors").open("ab") as file:
        file.write(b"x")
    refused(source, {"step": "drop-layers", "layers": [1]}, saying="too long")


@pytest.mark.parametrize("header", [b"[]", b"{", b'{"a": 1}', b'{"a":{"dtype":"F9","shape":[],"data_offsets":[0,1]}}'])
def test_a_header_that_is_none_is_refused(source: Path, header: bytes) -> None:
    (source / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    refused(source, {"step": "drop-layers", "layers": [1]}, saying=r"header|dtype F9")


def test_an_index_that_promises_more_than_there_is_is_refused(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()), files=2)
    index = json.loads((source / "model.safetensors.index.json").read_text())
    index["weight_map"]["model.ghost"] = "part-0.safetensors"
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(source, {"step": "drop-layers", "layers": [1]}, saying="promises model.ghost")
    index["weight_map"]["model.ghost"] = "../elsewhere.safetensors"
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(source, {"step": "drop-layers", "layers": [1]}, saying="in its own folder")


def test_a_value_that_is_not_finite_stops_quantisation(tmp_path: Path) -> None:
    weights = arrays(text_config())
    weights["model.layers.3.mlp.up_proj.weight"][1][40, 7] = 0x7FC0  # NaN as bfloat16
    source = write_checkpoint(tmp_path / "in", text_config(), weights)
    refused(source, {"step": "quantize"}, saying="layers.3.mlp.up_proj.weight_.* not finite")


@pytest.mark.parametrize("content", ["somebody's file", '{"plan": "another"}'])
def test_an_output_folder_with_other_content_is_left_alone(source: Path, content: str) -> None:
    out = source.parent / "out"
    out.mkdir()
    (out / "paddock-bake.json").write_text(content)
    with pytest.raises(Refused):
        bake([read_step({"step": "drop-layers", "layers": [1]})], Route(source, out), make_progress=Silent)
    assert (out / "paddock-bake.json").read_text() == content
    assert not (source.parent / "out.baking").exists()


def test_input_and_output_are_different_folders(source: Path) -> None:
    for out in (source, source / "inside"):
        with pytest.raises(Refused):
            bake([read_step({"step": "untie-head"})], Route(source, out), make_progress=Silent)
    assert not (source / "inside.baking").exists()


def test_model_and_drafter_can_t_be_swapped(source: Path) -> None:
    step = read_step({"step": "set-centroid-top-k", "top_k": 8})
    with pytest.raises(Refused, match="wrong way round"):
        bake([step], None, Route(source, source.parent / "out"), make_progress=Silent)


def test_keep_sets_are_composed_by_union_intersection_and_rows(source: Path, tmp_path: Path) -> None:
    assert compose([[1, 2, 9], [2, 3]], How.UNION, 10).ids == (1, 2, 3, 9)
    assert compose([[1, 2, 9], [2, 3]], How.INTERSECTION, 10).ids == (2,)
    assert compose([[1, 4, 9], [2, 0]], How.ROWS, 10).ids == (1, 9)
    with pytest.raises(Refused, match="no token id below 3"):
        compose([[1, 4, 9], [3]], How.ROWS, 10)
    (tmp_path / "one.json").write_text("[315]")
    made = write_composed([tmp_path / "one.json"], How.UNION, source, tmp_path / "out.json", add_needed=True)
    assert made.ids == (*range(264), 300, 315)
    assert json.loads((tmp_path / "out.json").read_text())["keep_ids"] == list(made.ids)
    with pytest.raises(Refused, match="exists"):
        write_composed([tmp_path / "one.json"], How.UNION, source, tmp_path / "out.json", add_needed=True)


def test_a_folder_without_a_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="can't be read"):
        open_checkpoint(tmp_path)
