"""Bakes against the same change made in memory, tensor by tensor and bit by bit."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddock_stack import VERSION
from paddock_stack.bake.baking import Baked, Route, bake
from paddock_stack.bake.steps.drop_layers import DropLayers
from paddock_stack.bake.steps.heads import PruneHead, UntieHead
from paddock_stack.bake.steps.quantize import Quantize
from paddock_stack.bake.steps.settings import SetCentroidTopK, SetWindow
from paddock_stack.bake.steps.step import Step
from paddock_stack.bake.verification import verify
from tests.runner.stack.bake.checkpoints import (
    KINDS,
    PER_LAYER,
    SHARED,
    VOCAB,
    Arrays,
    arrays,
    assert_same,
    read_folder,
    text_config,
    towers,
    write_checkpoint,
)

DROPPED = (0, 7, 8)
KEPT = [index for index in range(len(KINDS)) if index not in DROPPED]


class Silent:
    """Take progress and say nothing."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.files = total, 0, set[str]()

    def add(self, count: int, what: str) -> None:
        self.done += count
        self.files.add(what)


def baked(source: Path, out: Path, *steps: Step, **options: Any) -> dict[str, Any]:
    """Bake `steps`, check the result by its own provenance, and return its configuration."""
    bake(steps, Route(source, out), make_progress=Silent, **options)
    verify(out)
    config: dict[str, Any] = json.loads((out / "config.json").read_text())
    return config


def without_layers(weights: Arrays, prefix: str = "model.") -> Arrays:
    """Return what is left of `weights` without the layers in DROPPED, made in memory."""
    made: Arrays = {}
    first_sharer = len(KINDS) - SHARED
    for name, (dtype, values) in weights.items():
        found = re.match(rf"{re.escape(prefix)}layers\.(\d+)\.(.*)", name)
        if found is None:
            made[name] = dtype, values
        elif int(found[1]) in KEPT:
            unread = found[2].startswith(("self_attn.k_proj", "self_attn.v_proj")) and int(found[1]) >= first_sharer
            made |= {} if unread else {f"{prefix}layers.{KEPT.index(int(found[1]))}.{found[2]}": (dtype, values)}
    table, projection = f"{prefix}embed_tokens_per_layer.weight", f"{prefix}per_layer_model_projection.weight"
    cut = made[table][1].reshape(VOCAB, -1, PER_LAYER)[:, KEPT].reshape(VOCAB, -1)
    made[table] = made[table][0], cut
    rows = made[projection][1].reshape(len(KINDS), PER_LAYER, -1)[KEPT]
    made[projection] = made[projection][0], rows.reshape(-1, rows.shape[-1])
    return made


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("dtype", ["BF16", "F32"])
def test_a_streamed_bake_equals_one_in_memory(tmp_path: Path, files: int, dtype: str) -> None:
    weights = arrays(text_config(), dtype=dtype)
    source = write_checkpoint(tmp_path / "in", text_config(), weights, files)
    config = baked(source, tmp_path / "out", DropLayers(DROPPED))
    assert_same(read_folder(tmp_path / "out"), without_layers(weights))
    assert config["num_hidden_layers"] == 9
    assert config["num_kv_shared_layers"] == 4
    assert config["layer_types"] == [KINDS[index] for index in KEPT]
    assert config["per_layer_config"] == {key: {"head_dim": 64} for key in ("1", "4", "8")}


def test_layers_beyond_ten_keep_zero_padded_keys(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    config = baked(source, tmp_path / "out", DropLayers((0,)))
    assert list(config["per_layer_config"]) == ["01", "04", "07", "10"]


def test_the_older_form_of_head_sizes_stays_as_it_is(tmp_path: Path) -> None:
    text = text_config(global_head_dim=64)
    source = write_checkpoint(tmp_path / "in", text, arrays(text))
    config = baked(source, tmp_path / "out", DropLayers(DROPPED))
    assert config["global_head_dim"] == 64
    assert "per_layer_config" not in config


def test_towers_of_a_multimodal_model_are_copied_whole(tmp_path: Path) -> None:
    prefix = "model.language_model."
    config = {"model_type": "gemma4", "text_config": text_config(), "vision_config": {"hidden_size": 64}}
    weights = arrays(text_config(), prefix) | towers()
    source = write_checkpoint(tmp_path / "in", config, weights)
    made = baked(source, tmp_path / "out", DropLayers(DROPPED))
    assert_same(read_folder(tmp_path / "out"), without_layers(weights, prefix))
    assert made["vision_config"] == config["vision_config"]
    assert made["text_config"]["num_hidden_layers"] == 9


def test_packed_tables_and_projections_are_cut_as_their_floats_are(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    packing = Quantize(bits=4, group_size=32)
    baked(source, tmp_path / "first", DropLayers(DROPPED), packing)
    baked(source, tmp_path / "packed", packing)
    config = baked(tmp_path / "packed", tmp_path / "second", DropLayers(DROPPED))
    assert_same(read_folder(tmp_path / "second"), read_folder(tmp_path / "first"))
    assert config == json.loads((tmp_path / "first/config.json").read_text())


def test_a_packed_per_layer_table_is_cut_by_whole_words(tmp_path: Path) -> None:
    text = text_config()
    weights = arrays(text)
    width = len(KINDS) * PER_LAYER
    numbers = np.random.default_rng(1)
    del weights["model.embed_tokens_per_layer.weight"]
    stem = "model.embed_tokens_per_layer.weight"
    words = numbers.integers(-(2**31), 2**31, (VOCAB, width // 8), dtype=np.int32)
    scales = (numbers.random((VOCAB, width // 16)) + 1).astype("<f4").view("<u4") >> 16
    weights |= {f"{stem}_packed": ("I32", words), f"{stem}_scale": ("BF16", scales.astype("<u2"))}
    weights[f"{stem}_shape"] = "I64", np.array([VOCAB, width], "<i8")
    group = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 16}
    quantised = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": []}
    quantised["config_groups"] = {"table": {"targets": ["re:.*embed_tokens_per_layer$"], "weights": group}}
    source = write_checkpoint(tmp_path / "in", text | {"quantization_config": quantised}, weights)
    baked(source, tmp_path / "out", DropLayers(DROPPED))
    made = read_folder(tmp_path / "out")
    expected = words.reshape(VOCAB, len(KINDS), -1)[:, KEPT].reshape(VOCAB, -1)
    assert (made[f"{stem}_packed"][1] == expected).all()
    expected_scales = scales.reshape(VOCAB, len(KINDS), -1)[:, KEPT].reshape(VOCAB, -1)
    assert (made[f"{stem}_scale"][1] == expected_scales).all()
    assert made[f"{stem}_shape"][1].tolist() == [VOCAB, 9 * PER_LAYER]


def test_a_chain_equals_its_steps_one_by_one(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    keep = tmp_path / "keep.json"
    keep.write_text(json.dumps({"keep_ids": list(range(310))}))
    steps = (DropLayers(DROPPED), UntieHead(bits="4", group_size=32), PruneHead(keep), Quantize(group_size=16))
    together = baked(source, tmp_path / "together", *steps)
    place = source
    for number, step in enumerate(steps):
        one_by_one = baked(place, tmp_path / f"step-{number}", step)
        place = tmp_path / f"step-{number}"
    assert_same(read_folder(tmp_path / "together"), read_folder(place))
    assert together == one_by_one


def test_large_results_are_split_into_files_that_an_index_names(tmp_path: Path) -> None:
    weights = arrays(text_config())
    source = write_checkpoint(tmp_path / "in", text_config(), weights)
    baked(source, tmp_path / "out", DropLayers(DROPPED), shard_bytes=100_000)
    index = json.loads((tmp_path / "out/model.safetensors.index.json").read_text())
    files = sorted(path.name for path in (tmp_path / "out").glob("*.safetensors"))
    assert len(files) > 3
    assert sorted(set(index["weight_map"].values())) == files
    assert_same(read_folder(tmp_path / "out"), without_layers(weights))


def test_provenance_names_parents_steps_and_results_and_keeps_the_history(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    baked(source, tmp_path / "one", DropLayers(DROPPED))
    baked(tmp_path / "one", tmp_path / "two", UntieHead(bits="none"))
    told = json.loads((tmp_path / "two/paddock-bake.json").read_text())
    assert told["steps"] == [{"step": "untie-head", "bits": "none", "group_size": 32}]
    assert told["tool"] == f"paddock-stack {VERSION}"
    assert told["parent"]["provenance"]["steps"] == [{"step": "drop-layers", "layers": list(DROPPED)}]
    assert told["parent"]["files"] == told["parent"]["provenance"]["files"]
    assert (tmp_path / "two/chat_template.jinja").read_bytes() == (source / "chat_template.jinja").read_bytes()


def test_the_same_bake_again_writes_nothing_and_elsewhere_the_same_bytes(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    (first,) = bake([DropLayers(DROPPED)], Route(source, tmp_path / "out"), make_progress=Silent)
    (again,) = bake([DropLayers(DROPPED)], Route(source, tmp_path / "out"), make_progress=Silent)
    bake([DropLayers(DROPPED)], Route(source, tmp_path / "other"), make_progress=Silent)
    assert first.is_new
    assert again == Baked(tmp_path / "out", first.nbytes, False)
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_window_and_centroids_are_set_in_model_and_drafter(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    text = text_config(layer_types=KINDS[:3], num_kv_shared_layers=3)
    config = {"model_type": "gemma4_assistant", "text_config": text, "use_ordered_embeddings": True}
    drafter = write_checkpoint(tmp_path / "drafter", config | {"num_centroids": 64}, arrays(text))
    steps = [SetWindow(48), SetCentroidTopK(12)]
    bake(steps, Route(source, tmp_path / "out"), Route(drafter, tmp_path / "out-drafter"), make_progress=Silent)
    assert json.loads((tmp_path / "out/config.json").read_text())["sliding_window"] == 48
    made = json.loads((tmp_path / "out-drafter/config.json").read_text())
    assert (made["text_config"]["sliding_window"], made["centroid_intermediate_top_k"]) == (48, 12)
    assert_same(read_folder(tmp_path / "out-drafter"), arrays(text))


def test_progress_counts_every_byte(tmp_path: Path) -> None:
    seen: list[Silent] = []

    def make(total: int) -> Silent:
        seen.append(Silent(total))
        return seen[-1]

    source = write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))
    bake([DropLayers(DROPPED)], Route(source, tmp_path / "out"), make_progress=make)
    weights = sum(values.nbytes for _, values in read_folder(tmp_path / "out").values())
    assert seen[0].done == weights
    assert 0 <= seen[0].total - weights < 100_000  # the header
