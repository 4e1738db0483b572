"""Checkpoints are found, held against their pins, baked once and given one window."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from paddock_stack.launcher.preparing import prepare
from paddock_stack.launcher.weights import WrongWeights, find
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine, Weights
from tests.runner.stack.bake.checkpoints import arrays, text_config, write_checkpoint


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", text_config(), arrays(text_config()))


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    folder = tmp_path / "drafter"
    folder.mkdir()
    text = {"model_type": "gemma4_text", "sliding_window": 512}
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma4_assistant", "text_config": text}))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_relative_folder_is_the_submissions_and_its_pins_hold(model: Path, drafter: Path, tmp_path: Path) -> None:
    found = find(Weights("model"), tmp_path, tmp_path / "cache")
    assert found.folder == model.resolve()
    assert find(Weights("model", found.sha256), tmp_path, tmp_path).sha256 == found.sha256
    of_file = hashlib.sha256(b"weights").hexdigest()
    assert find(Weights("drafter", of_file), tmp_path, tmp_path).weights_sha256 == of_file
    (model / "tokenizer_config.json").write_text('{"changed": true}')
    with pytest.raises(WrongWeights, match="which pins it"):
        find(Weights("model", found.sha256), tmp_path, tmp_path)


@pytest.mark.parametrize("uri", ["/nowhere/at/all", "./gone", "gone"])
def test_missing_folder_is_named(uri: str, tmp_path: Path) -> None:
    with pytest.raises(WrongWeights, match="there is no folder"):
        find(Weights(uri), tmp_path, tmp_path)


def test_bucket_is_synced_into_the_cache(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "hf").write_text(f'#!/bin/sh\ntest "$3" = hf://buckets/a/b/c && cp {model}/* "$4"\n')
    (bin_folder / "hf").chmod(0o755)
    monkeypatch.setattr("sys.executable", str(bin_folder / "python"))
    found = find(Weights("hf://buckets/a/b/c"), tmp_path, tmp_path / "cache")
    assert found.sha256 == find(Weights("model"), tmp_path, tmp_path).sha256
    with pytest.raises(WrongWeights, match="can't be fetched"):
        find(Weights("hf://buckets/a/other"), tmp_path, tmp_path / "cache")


def test_bake_is_made_once_and_found_again(model: Path, tmp_path: Path) -> None:
    profile = load("int4-ar", Machine.CPU, {"weights.uri": str(model)})
    first = prepare(profile, tmp_path, tmp_path / "cache")
    made = (first.model / "config.json").stat().st_mtime_ns
    again = prepare(profile, tmp_path, tmp_path / "cache")
    assert again.model == first.model != model
    assert (again.model / "config.json").stat().st_mtime_ns == made
    ahead = prepare(load("int4-ar", Machine.CPU, {"weights.uri": str(first.model)}), tmp_path, tmp_path / "other")
    assert (ahead.model, ahead.steps) == (first.model.resolve(), ())


def test_window_is_written_into_model_and_drafter(model: Path, drafter: Path, tmp_path: Path) -> None:
    overrides = {"weights.uri": str(model), "speculation.drafter.uri": str(drafter), "window": 8}
    ready = prepare(load("exact-mtp", Machine.CPU, overrides), tmp_path, tmp_path / "cache")
    assert ready.drafter is not None
    told = [json.loads((folder / "config.json").read_text()) for folder in (ready.model, ready.drafter)]
    assert [each.get("text_config", each)["sliding_window"] for each in told] == [8, 8]
    assert json.loads((drafter / "config.json").read_text())["text_config"]["sliding_window"] == 512
    assert (ready.drafter / "model.safetensors").read_bytes() == b"weights"
