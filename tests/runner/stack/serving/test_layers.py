"""Leaving layers out at run time, baking them out, and leaving them out of transformers are one and the same."""

import shutil
from pathlib import Path

import pytest

from tests.runner.stack.bake.checkpoints import read_folder
from tests.runner.stack.serving.asked import bake, reference, served
from tests.runner.stack.serving.zygote import TaskFailed, Zygote

pytestmark = pytest.mark.vllm

DROPPED = [0, 3]  # one with keys and values of its own, one that shares those of layer 1


def test_skipped_layers_are_baked_layers_are_those_of_transformers(
    zygote: Zygote, checkpoints: Path, tmp_path: Path
) -> None:
    bake("drop-layers", checkpoints / "text", tmp_path / "baked", "--layers", ",".join(map(str, DROPPED)))
    expected = reference(zygote, checkpoints / "text", skip=DROPPED)["tokens"]
    assert expected != reference(zygote, checkpoints / "text")["tokens"]
    assert reference(zygote, tmp_path / "baked")["tokens"] == expected
    assert served(zygote, tmp_path / "baked")["tokens"] == expected
    skipping = {"hf_overrides": {"skip_layers": DROPPED}}
    assert served(zygote, checkpoints / "text", options=skipping)["tokens"] == expected


def test_norms_of_layers_that_read_others_keys_are_kept_and_change_nothing(
    zygote: Zygote, checkpoints: Path, tmp_path: Path
) -> None:
    shutil.copytree(checkpoints / "text", tmp_path / "published")
    zygote.call("tests.runner.stack.serving.checkpoints:add_unread_norms", folder=str(tmp_path / "published"))
    bake("drop-layers", tmp_path / "published", tmp_path / "baked", "--layers", ",".join(map(str, DROPPED)))
    sharers = [f"model.layers.{index}.self_attn.k_norm.weight" for index in (2, 3)]
    assert set(sharers) < set(read_folder(tmp_path / "baked"))
    expected = reference(zygote, checkpoints / "text", skip=DROPPED)["tokens"]
    assert served(zygote, tmp_path / "baked")["tokens"] == reference(zygote, tmp_path / "baked")["tokens"] == expected


def test_layer_whose_keys_and_values_are_shared_cannot_be_skipped(zygote: Zygote, checkpoints: Path) -> None:
    with pytest.raises(TaskFailed, match="layer 1 holds the keys and values that later layers share"):
        served(zygote, checkpoints / "text", options={"hf_overrides": {"skip_layers": [1]}})
