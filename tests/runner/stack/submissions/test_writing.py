"""A profile becomes a folder that the runner takes as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paddock_stack import cli
from paddock_stack.launcher.reading import submitted
from paddock_stack.launcher.weights import WrongWeights, find
from paddock_stack.profiles.catalogue import NAMES
from paddock_stack.profiles.schema import Machine
from runner.manifests import BUNDLED, parse_manifest
from tests.runner.stack.bake.checkpoints import arrays, text_config, write_checkpoint
from tests.runner.stack.serving.zygote import ROOT


@pytest.mark.parametrize("name", NAMES)
def test_bundled_folder_is_what_the_command_writes_and_the_runner_takes_it(name: str, tmp_path: Path) -> None:
    assert cli.main(["submission", name, str(tmp_path / "made")]) == 0
    for file in ("manifest.json", "serve.py"):
        assert (ROOT / "submissions" / name / file).read_text() == (tmp_path / "made" / file).read_text()
    assert parse_manifest((tmp_path / "made/manifest.json").read_bytes()).serve == ["python", "serve.py"]


def test_weights_set_by_hand_are_the_manifests_model(tmp_path: Path) -> None:
    words = ("--set", "weights.uri=somebody/gemma", "--configuration-only")
    assert cli.main(["submission", "exact-bf16", str(tmp_path / "made"), *words]) == 0
    manifest = json.loads((tmp_path / "made/manifest.json").read_text())
    assert (manifest["model_id"], "overrides" in manifest) == ("somebody/gemma", False)
    assert submitted(tmp_path / "made", Machine.A10G, {"MODEL_ID": "/mirror/gemma"}).weights.uri == "/mirror/gemma"


def test_configuration_only_carries_weights_pins_and_overrides(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", text_config(), arrays(text_config()))
    out = tmp_path / "made"
    words = ("--weights", source, "--configuration-only", "--set", "warm_up.prompts=3", "--name", "mine")
    assert cli.main(["submission", "exact-bf16", str(out), *map(str, words)]) == 0
    assert tuple(parse_manifest((out / "manifest.json").read_bytes()).serve) == BUNDLED
    assert not (out / "serve.py").exists()
    profile = submitted(out, Machine.CPU, {"MODEL_ID": str(out / "model")})
    assert (profile.name, profile.warm_up.prompts, profile.weights.uri) == ("exact-bf16", 3, str(out / "model"))
    assert find(profile.weights, out, tmp_path).folder == (out / "model").resolve()
    (out / "model/config.json").write_text(json.dumps(text_config() | {"changed": True}))
    with pytest.raises(WrongWeights, match="which pins it"):
        find(profile.weights, out, tmp_path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("serve", "int4-fast", "--submission", "."), "and not both"),
        (("serve",), "name a PROFILE or a --submission"),
        (("serve", "--submission", "/nowhere"), "can't be read"),
        (("serve", "int4-fastest", "--dry-run"), "there is no profile 'int4-fastest'"),
        (("serve", "int4-fast", "--set", "levers.speed=true", "--dry-run"), "no key 'speed'"),
        (("serve", "int4-fast", "--set", "speculation.tokens=9", "--dry-run"), "falls back to 2D"),
        (("submission", "int4-fast", "/tmp"), "not an empty folder"),
        (("submission", "int4-headprune", "OUT", "--set", "keepset=12k.json"), "with --keepset"),
        (("submission", "exact-bf16", "OUT", "--set", "weights.uri=hf://buckets/a/b"), "then --weights FOLDER"),
        (("submission", "exact-mtp", "OUT", "--set", "speculation.drafter.uri=/usr"), "copy it with --drafter"),
        (("submission", "exact-mtp", "OUT", "--set", "speculation.tokens=9"), "falls back to 2D"),
        (("submission", "exact-mtp", "OUT", "--set", "env.PORT='1'"), "PORT is set by the runner"),
        (("submission", "exact-mtp", "OUT", "--set", "env.HF_TOKEN=hf_x"), "HF_TOKEN is named like a secret"),
        (("submission", "exact-mtp", "OUT", "--set", "engine.compilation-config.a=2026-01-01"), "can't say"),
        (("submission", "exact-mtp", "OUT", "--set", "machine.cpu.window=1"), "can't be overridden"),
        (("submission", "exact-mtp", "OUT", "--name", "two\nlines"), "the manifest's name must be one line"),
        (
            ("submission", "exact-mtp", "OUT", "--weights", "/nowhere"),
            "--weights /nowhere is no folder with a config.json",
        ),
        (("submission", "exact-mtp", "OUT", "--drafter", "/usr"), "--drafter /usr is no folder with a config.json"),
        (("submission", "int4-headprune", "OUT", "--keepset", "/nowhere"), "the keep-set /nowhere can't be read"),
        (("submission", "exact-mtp", "OUT", "--port", "80"), "between 1024 and 65535"),
    ],
)
def test_refusal_is_one_sentence_and_writes_nothing(
    words: tuple[str, ...], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([str(tmp_path / "out") if word == "OUT" else word for word in words]) == 1
    assert not (tmp_path / "out").exists()
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
