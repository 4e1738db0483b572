"""Checkpoints are found, held against their pins, baked once and given one window."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paddock_stack import cli
from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.steps.catalogue import read_step
from paddock_stack.launcher import commands, record
from paddock_stack.launcher.history import WrongBake
from paddock_stack.launcher.logs import Resolved
from paddock_stack.launcher.preparing import Prepared, prepare
from paddock_stack.launcher.serving import Address
from paddock_stack.launcher.warm_up import Warmed
from paddock_stack.launcher.weights import WrongWeights, find
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine, Profile, Weights
from paddock_stack.refusals import Refused
from tests.runner.stack.bake.checkpoints import Arrays, arrays, read_folder, text_config, towers, write_checkpoint


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
    assert [step["step"] for step in first.steps] == ["quantize", "untie-head"]
    assert again.steps == first.steps


@pytest.fixture
def ahead(model: Path, tmp_path: Path) -> Path:
    """The model, quantised and then untied in two bakes, as int4-fast does it on a CPU."""
    bake([read_step({"step": "quantize"})], Route(model, tmp_path / "packed"))
    bake([read_step({"step": "untie-head"})], Route(tmp_path / "packed", tmp_path / "ahead"))
    return tmp_path / "ahead"


def _prepared(name: str, folder: Path, tmp_path: Path, **rest: Any) -> Prepared:
    settings = {"weights.uri": str(folder), "speculation.tokens": 0, "levers.skinny": True, **rest}
    return prepare(load(name, Machine.CPU, settings), tmp_path, tmp_path / "cache")


def test_weights_baked_ahead_by_the_profiles_steps_are_served_as_they_are(ahead: Path, tmp_path: Path) -> None:
    ready = _prepared("int4-fast", ahead, tmp_path)
    assert ready.model == ahead
    assert [step["step"] for step in ready.steps] == ["quantize", "untie-head"]
    warmed = Warmed(1, 0, 16, 50, 50, "", 1, (), 0.1)
    told = record.made(load("int4-fast", Machine.CPU), ready, Resolved(), warmed)
    assert told["bake"] == list(told["model"]["baked_by"]) == list(ready.steps)


def test_steps_that_baked_weights_lack_are_baked_at_their_end(ahead: Path, tmp_path: Path) -> None:
    ready = _prepared("int4-fast", ahead, tmp_path, **{"levers.skinny": False})
    assert ready.model != ahead
    assert [step["step"] for step in ready.steps] == ["quantize", "untie-head", "dequant-ple-gate"]
    gates = [name for name in read_folder(ready.model) if "per_layer_input_gate" in name]
    assert gates
    assert all(name.endswith(".weight") for name in gates)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("exact-bf16", {}, 'step 1 of the weights\' bake is {.*"quantize"}, where exact-bf16 bakes nothing'),
        ("int4-fast", {"bake": [{"step": "quantize", "group_size": 64}]}, 'where int4-fast bakes {.*"group_size": 64'),
        ("int4-fast", {"bake": [{"step": "quantize"}]}, 'step 2 .* is {.*"untie-head"}, where int4-fast bakes nothing'),
        (
            "int4-headprune",
            {"bake": [{"step": "prune-head"}]},
            'step 1 .* is {.*"quantize"}, where .* {.*"prune-head"}',
        ),
        ("int4-fast", {"bake": [{"step": "untie-head"}]}, 'step 1 .* is {.*"quantize"}, where .* {.*"untie-head"}'),
    ],
)
def test_weights_baked_by_other_steps_are_refused(
    name: str, settings: dict[str, Any], sentence: str, ahead: Path, tmp_path: Path
) -> None:
    with pytest.raises(WrongBake, match=sentence):
        _prepared(name, ahead, tmp_path, **settings)
    assert not (tmp_path / "cache/baked").exists()


def test_baked_window_is_the_profiles_or_refused(model: Path, tmp_path: Path) -> None:
    step = read_step({"step": "set-window", "window": 8, "without_drafter": True})
    bake([step], Route(model, tmp_path / "narrow"))
    with pytest.raises(WrongBake, match=r'step 1 .* is {.*"set-window".*}, where int4-ar bakes {.*"quantize"}'):
        _prepared("int4-ar", tmp_path / "narrow", tmp_path)
    ready = _prepared("int4-ar", tmp_path / "narrow", tmp_path, window=8)
    assert [step["step"] for step in ready.steps] == ["set-window", "quantize", "untie-head"]


def test_head_pruned_ahead_to_another_keep_set_is_refused(ahead: Path, tmp_path: Path) -> None:
    for folder, most in (("a", 320), ("b", 319)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "keepset.json").write_text(json.dumps(list(range(most))))
    prune = {"step": "prune-head", "keep": str(tmp_path / "a/keepset.json")}
    bake([read_step(prune)], Route(ahead, tmp_path / "pruned"))
    settings = {"weights.uri": str(tmp_path / "pruned"), "speculation.tokens": 0, "levers.skinny": True}
    profile = load("int4-headprune", Machine.CPU, settings)
    for base in (tmp_path / "a", tmp_path):  # who ships what is baked ahead need not ship the file
        assert prepare(profile, base, tmp_path / "cache").model == tmp_path / "pruned"
    with pytest.raises(WrongBake, match="step 3 of the weights' bake"):
        prepare(profile, tmp_path / "b", tmp_path / "cache")


def test_baked_folder_that_was_changed_since_is_refused(ahead: Path, tmp_path: Path) -> None:
    config = json.loads((ahead / "config.json").read_text())
    (ahead / "config.json").write_text(json.dumps({**config, "sliding_window": 8}))
    with pytest.raises(
        WrongWeights, match=r"config\.json is not what paddock-bake\.json was written for; bake it anew"
    ):
        _prepared("int4-fast", ahead, tmp_path)


@pytest.mark.parametrize("told", ['{"files": {}, "parent": {}}', '{"files": {}, "steps": [], "parent": 3}', "{}"])
def test_provenance_that_tells_no_steps_is_refused(told: str, model: Path, tmp_path: Path) -> None:
    (model / "paddock-bake.json").write_text(told)
    with pytest.raises(Refused, match=r"paddock-bake\.json"):
        _prepared("exact-bf16", model, tmp_path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "there is no keep-set .*keepset.json; put the file there"), ("[]", "empty"), ('["a"]', "no token id")],
)
def test_keep_set_that_is_missing_or_none_is_refused(
    content: str | None, sentence: str, model: Path, tmp_path: Path
) -> None:
    if content:
        (tmp_path / "keepset.json").write_text(content)
    with pytest.raises(Refused, match=sentence):
        _prepared("int4-headprune", model, tmp_path)


def test_files_are_sought_beside_the_profile_or_in_the_submission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases: list[Path] = []

    def serve(_profile: Profile, _address: Address, base: Path) -> int:
        bases.append(base)
        return 0

    monkeypatch.setattr(commands, "serve", serve)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/mine.toml").write_text('extends = "exact-bf16"')
    (tmp_path / "sub/manifest.json").write_text('{"profile": "mine.toml"}')
    for words in (["sub/mine.toml"], ["--submission", "sub"], ["exact-bf16"]):
        assert cli.main(["serve", *words, "--machine", "cpu"]) == 0
    assert bases == [tmp_path / "sub", tmp_path / "sub", tmp_path]


def test_revision_is_fetched_and_pins_where_it_is_a_whole_commit(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str | None]] = []

    def snapshot_download(uri: str, revision: str | None = None) -> str:
        asked.append((uri, revision))
        if revision == "gone":
            raise OSError("no such revision")
        return str(model)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    wanted = [Weights("a/b"), Weights("a/b", revision="main"), Weights("a/b", revision="c0" * 20)]
    found = [find(each, tmp_path, tmp_path) for each in wanted]
    assert asked == [("a/b", None), ("a/b", "main"), ("a/b", "c0" * 20)]
    assert [each.pinned_by for each in found] == ["", "", "revision"]
    assert {each.sha256 for each in found} == {find(Weights("model"), tmp_path, tmp_path).sha256}
    assert find(Weights("a/b", found[0].sha256), tmp_path, tmp_path).record()["pinned_by"] == "sha256"
    with pytest.raises(WrongWeights, match="which pins it"):
        find(Weights("a/b", "0" * 64, "c0" * 20), tmp_path, tmp_path)
    with pytest.raises(WrongWeights, match="a/b, revision gone, is neither in the Hub's cache"):
        find(Weights("a/b", revision="gone"), tmp_path, tmp_path)


NORM, TOWER = "model.language_model.layers.0.input_layernorm.weight", "model.audio_tower.layers.0.norm_out.weight"


@pytest.fixture
def whole() -> tuple[dict[str, Any], Arrays]:
    """A multimodal model's configuration and weights; of the towers a few."""
    text = text_config()
    config = {"model_type": "gemma4", "text_config": text, "vision_config": {"a": 1}, "audio_config": {"a": 1}}
    return config, arrays(text, "model.language_model.") | towers() | {TOWER: ("BF16", np.zeros(8, "<u2"))}


def test_whole_checkpoint_is_served_as_it_is(whole: tuple[dict[str, Any], Arrays], tmp_path: Path) -> None:
    model = write_checkpoint(tmp_path / "model", *whole)
    ready = prepare(load("exact-bf16", Machine.CPU, {"weights.uri": str(model)}), tmp_path, tmp_path / "cache")
    assert (ready.model, ready.towers) == (model, ("image", "audio"))


@pytest.mark.parametrize(("gone", "sentence"), [(NORM, f"the weights lack {NORM}"), (TOWER, "of that audio tower")])
def test_checkpoint_that_lacks_a_part_is_refused_though_nothing_is_baked(
    whole: tuple[dict[str, Any], Arrays], tmp_path: Path, gone: str, sentence: str
) -> None:
    config, weights = whole
    model = write_checkpoint(tmp_path / "model", config, {name: weights[name] for name in weights if name != gone})
    with pytest.raises(Refused, match=sentence):
        prepare(load("exact-bf16", Machine.CPU, {"weights.uri": str(model)}), tmp_path, tmp_path / "cache")


def test_window_is_written_into_model_and_drafter(model: Path, drafter: Path, tmp_path: Path) -> None:
    overrides = {"weights.uri": str(model), "speculation.drafter.uri": str(drafter), "window": 8}
    ready = prepare(load("exact-mtp", Machine.CPU, overrides), tmp_path, tmp_path / "cache")
    assert ready.drafter is not None
    told = [json.loads((folder / "config.json").read_text()) for folder in (ready.model, ready.drafter)]
    assert [each.get("text_config", each)["sliding_window"] for each in told] == [8, 8]
    assert json.loads((drafter / "config.json").read_text())["text_config"]["sliding_window"] == 512
    assert (ready.drafter / "model.safetensors").read_bytes() == b"weights"
