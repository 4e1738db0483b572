"""What quantising, untying, pruning, regrouping and dequantising leave in tensors and configuration."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from paddock_stack import keepset
from paddock_stack.bake.dtypes import to_float32
from paddock_stack.bake.steps.drop_layers import DropLayers
from paddock_stack.bake.steps.floats import DequantPleGate
from paddock_stack.bake.steps.heads import PruneHead, UntieHead
from paddock_stack.bake.steps.quantize import Quantize, Regroup
from tests.runner.stack.bake.checkpoints import (
    VOCAB,
    Arrays,
    arrays,
    read_folder,
    text_config,
    towers,
    write_checkpoint,
)
from tests.runner.stack.bake.test_baking import baked

LAYER = "model.layers.3."


def dequantised(weights: Arrays, module: str) -> np.ndarray:
    """Return the floats that a packed module stands for, nibble by nibble."""
    words, (dtype, scales) = weights[f"{module}.weight_packed"][1], weights[f"{module}.weight_scale"]
    rows, columns = weights[f"{module}.weight_shape"][1].tolist()
    values = np.stack([(words.view("<u4") >> (4 * place)) & 15 for place in range(8)], axis=2).astype(np.float32) - 8
    return values.reshape(rows, scales.shape[1], -1)[:, :, : columns // scales.shape[1]].reshape(
        rows, columns
    ) * np.repeat(to_float32(scales, dtype), columns // scales.shape[1], axis=1)


def floats(weights: Arrays, module: str) -> np.ndarray:
    """Return the floats of an unpacked module."""
    dtype, values = weights[f"{module}.weight"]
    return to_float32(values, dtype)


def groups_of(config: dict[str, Any]) -> dict[str, Any]:
    return {
        tuple(group["targets"]): (group["weights"]["num_bits"], group["weights"]["group_size"])
        for group in config["quantization_config"]["config_groups"].values()
    }


def test_quantised_weights_stand_for_what_they_were(tmp_path: Path) -> None:
    weights = arrays(text_config())
    source = write_checkpoint(tmp_path / "in", text_config(), weights)
    config = baked(source, tmp_path / "out", Quantize(group_size=32))
    made = read_folder(tmp_path / "out")
    for module in (f"{LAYER}mlp.down_proj", f"{LAYER}self_attn.q_proj", "model.per_layer_model_projection"):
        before, after = floats(weights, module), dequantised(made, module)
        assert np.abs(before - after).max() <= 0.52 * np.abs(before).max() / 7.5
    assert groups_of(config) == {("Linear",): (4, 32)}
    assert config["quantization_config"]["ignore"] == ["re:.*lm_head$"]
    for name in ("model.embed_tokens.weight", "model.norm.weight", f"{LAYER}layer_scalar"):
        assert made[name][1].tobytes() == weights[name][1].tobytes()


def test_towers_stay_out_of_the_quantisation(tmp_path: Path) -> None:
    config = {"model_type": "gemma4", "text_config": text_config(), "vision_config": {"hidden_size": 64}}
    weights = arrays(text_config(), "model.language_model.") | towers()
    source = write_checkpoint(tmp_path / "in", config, weights)
    made = baked(source, tmp_path / "out", Quantize(), UntieHead(group_size=64))
    assert "re:.*vision_tower.*" in made["quantization_config"]["ignore"]
    assert all(name in read_folder(tmp_path / "out") for name in towers())
    assert groups_of(made) == {("re:.*lm_head$",): (4, 64), ("Linear",): (4, 32)}
    assert made["tie_word_embeddings"] is made["text_config"]["tie_word_embeddings"] is False


def test_a_head_alone_can_be_quantised(tmp_path: Path) -> None:
    weights = arrays(text_config())
    source = write_checkpoint(tmp_path / "in", text_config(), weights)
    config = baked(source, tmp_path / "out", UntieHead(group_size=-1))
    assert groups_of(config) == {("re:.*lm_head$",): (4, None)}
    made, embedding = read_folder(tmp_path / "out"), floats(weights, "model.embed_tokens")
    assert made["lm_head.weight_scale"][1].shape == (VOCAB, 1)
    assert np.abs(dequantised(made, "lm_head") - embedding).max() <= 0.52 * np.abs(embedding).max() / 7.5


def test_a_head_of_the_body_s_own_scheme_is_still_named(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    config = baked(source, tmp_path / "out", Quantize(group_size=32), UntieHead(group_size=32))
    assert groups_of(config) == {("re:.*lm_head$",): (4, 32), ("Linear",): (4, 32)}
    assert config["quantization_config"]["ignore"] == []


def test_an_untied_head_in_floats_is_the_embedding_and_ignored(tmp_path: Path) -> None:
    weights = arrays(text_config())
    source = write_checkpoint(tmp_path / "in", text_config(), weights)
    config = baked(source, tmp_path / "out", Quantize(), UntieHead(bits="none"))
    made = read_folder(tmp_path / "out")
    assert made["lm_head.weight"][1].tobytes() == weights["model.embed_tokens.weight"][1].tobytes()
    assert config["quantization_config"]["ignore"] == ["re:.*lm_head$"]


def test_pruning_cuts_rows_and_tells_which(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    wide, narrow = [*range(264), 300, 310, 315], [*range(264), 300, 315]
    for name, ids in {"wide": wide[::-1], "narrow": narrow}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(ids))
    baked(source, tmp_path / "whole", UntieHead(group_size=32))
    baked(tmp_path / "whole", tmp_path / "wide", PruneHead(tmp_path / "wide.json"))
    config = baked(tmp_path / "wide", tmp_path / "narrow", PruneHead(tmp_path / "narrow.json"))
    whole, cut = read_folder(tmp_path / "whole"), read_folder(tmp_path / "narrow")
    for form in ("weight_packed", "weight_scale"):
        assert (cut[f"lm_head.{form}"][1] == whole[f"lm_head.{form}"][1][narrow]).all()
    assert cut["lm_head.weight_shape"][1].tolist() == [len(narrow), 64]
    kept = keepset.from_config(config)
    assert kept is not None
    assert kept.ids == tuple(narrow)
    assert config["vocab_size"] == VOCAB
    steps = json.loads((tmp_path / "narrow/paddock-bake.json").read_text())["steps"]
    assert steps[0]["keep_sha256"] == kept.sha256


def test_a_group_may_be_left_incomplete_by_name(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    (tmp_path / "keep.json").write_text(json.dumps(list(range(8))))
    prune = PruneHead(tmp_path / "keep.json", allow=("bytes", "template"))
    config = baked(source, tmp_path / "out", UntieHead(bits="none"), prune)
    assert config["lm_head_keep_ids"] == list(range(8))


def test_gates_become_the_floats_that_they_stood_for(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    baked(source, tmp_path / "packed", Quantize())
    config = baked(tmp_path / "packed", tmp_path / "out", DequantPleGate())
    packed, made = read_folder(tmp_path / "packed"), read_folder(tmp_path / "out")
    gate = f"{LAYER}per_layer_input_gate"
    assert f"{gate}.weight_packed" not in made
    error = np.abs(floats(made, gate) - dequantised(packed, gate))
    assert (error <= 2.0**-8 * np.abs(dequantised(packed, gate))).all()
    assert f"{LAYER}per_layer_projection.weight_packed" in made
    assert config["quantization_config"]["ignore"] == ["re:.*lm_head$", "re:.*per_layer_input_gate$"]


def test_regrouping_keeps_the_weights_within_both_steps(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    baked(source, tmp_path / "packed", Quantize(group_size=16))
    config = baked(tmp_path / "packed", tmp_path / "out", Regroup(group_size=32))
    packed, made = read_folder(tmp_path / "packed"), read_folder(tmp_path / "out")
    module = f"{LAYER}mlp.up_proj"
    assert made[f"{module}.weight_scale"][1].shape == (96, 2)
    before = dequantised(packed, module)
    assert np.abs(dequantised(made, module) - before).max() <= 0.53 * np.abs(before).max() / 7.5
    assert set(groups_of(config).values()) == {(4, 32)}


def test_kinds_can_have_schemes_of_their_own(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    steps = Quantize(group_size=32, modules=("mlp",)), Quantize(bits=8, group_size=-1, modules=("attention",))
    config = baked(source, tmp_path / "out", *steps)
    made = read_folder(tmp_path / "out")
    assert made[f"{LAYER}self_attn.q_proj.weight_packed"][1].shape == (128, 16)
    assert f"{LAYER}per_layer_input_gate.weight" in made
    assert set(groups_of(config).values()) == {(4, 32), (8, None)}


def test_patterns_about_single_layers_get_their_new_numbers(tmp_path: Path) -> None:
    weights = arrays(text_config())
    source = write_checkpoint(tmp_path / "in", text_config(), weights)
    baked(source, tmp_path / "packed", Quantize(modules=("mlp",)))
    config = json.loads((tmp_path / "packed/config.json").read_text())
    single = [f"model.layers.{index}.self_attn.{name}_proj" for index in (1, 9) for name in "qo"]
    config["quantization_config"]["ignore"] = [
        *("lm_head", r"re:.*layers\.\d+\.per_layer_.*", r"re:.*layers\.(0|3|7)\.self_attn\.[qkvo]_proj"),
        *(r"re:.*layers\.([245689]|1\d?)\.self_attn.*", *single, "model.per_layer_model_projection"),
    ]
    (tmp_path / "packed/config.json").write_text(json.dumps(config))
    made = baked(tmp_path / "packed", tmp_path / "out", DropLayers((1, 7)))
    ignored = made["quantization_config"]["ignore"]
    assert "lm_head" in ignored
    assert r"re:.*layers\.\d+\.per_layer_.*" in ignored
    assert "model.layers.7.self_attn.q_proj" in ignored  # it was 9
    assert {f"model.layers.{index}.self_attn.q_proj" for index in (0, 2)} <= set(ignored)  # they were 0 and 3
