"""A submission made of a profile of one's own carries all that it needs, and is read back as the launcher reads it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from paddock_stack import cli
from paddock_stack.launcher.preparing import prepare
from paddock_stack.launcher.reading import submitted
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine, Profile
from runner.manifests import BUNDLED, parse_manifest
from tests.runner.stack.bake.checkpoints import arrays, text_config, write_checkpoint

KEPT = [*range(264), 300]
OWN = """
extends = "Mine_below.toml"
warning = "Two lines,\\nall mine."
window = 24
{more}
"""
BELOW = """
extends = "exact-bf16"
[engine]
cudagraph-capture-sizes = [1, 8]
"""


def own(folder: Path, more: str = "") -> str:
    folder.mkdir()
    (folder / "my.toml").write_text(OWN.format(more=more))
    (folder / "Mine_below.toml").write_text(BELOW)
    return str(folder / "my.toml")


def read_back(folder: Path, machine: Machine = Machine.A10G) -> Profile:
    """Read a submission as the launcher does at the runner's call, from another folder than its own."""
    manifest = parse_manifest((folder / "manifest.json").read_bytes())
    assert tuple(manifest.serve) in (BUNDLED, ("python", "serve.py"))
    model = folder / manifest.model_id
    return submitted(folder, machine, {"MODEL_ID": str(model) if model.is_dir() else manifest.model_id})


@pytest.mark.parametrize("flags", [[], ["--configuration-only"]], ids=["serve.py", "configuration only"])
@pytest.mark.parametrize("machine", Machine)
def test_profile_is_read_back_from_the_folder_as_it_was(machine: Machine, flags: list[str], tmp_path: Path) -> None:
    name = own(tmp_path / "own")
    meant = load(name, machine, {"warm_up.prompts": 3})
    assert cli.main(["submission", name, str(tmp_path / "made"), "--set", "warm_up.prompts=3", *flags]) == 0
    (tmp_path / "own").rename(tmp_path / "elsewhere")
    made = read_back(tmp_path / "made", machine)
    assert made == meant
    assert (made.name, made.window, made.engine["cudagraph-capture-sizes"]) == ("my", 24, [1, 8])
    manifest = json.loads((tmp_path / "made/manifest.json").read_text())
    assert (manifest["profile"], manifest["name"]) == ("my.toml", "my")
    assert "Two lines, all mine." in manifest["description"]


def test_it_is_served_from_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    own(tmp_path / "own")
    assert cli.main(["submission", "own/my.toml", "made"]) == 0
    (tmp_path / "own").rename(tmp_path / "elsewhere")
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    for told in (["--submission", "../made"], ["../elsewhere/my.toml"]):
        assert cli.main(["serve", *told, "--machine", "a10g", "--dry-run"]) == 0
        assert "--cudagraph-capture-sizes 1 8" in capsys.readouterr().out


def test_lists_tables_and_variables_override_as_written(tmp_path: Path) -> None:
    settings = ["bake=[]", "env.VLLM_LOGGING_LEVEL=INFO", "engine.cudagraph-capture-sizes=[2]"]
    words = [word for setting in settings for word in ("--set", setting)]
    assert cli.main(["submission", "int4-fast", str(tmp_path / "made"), "--configuration-only", *words]) == 0
    made = read_back(tmp_path / "made")
    assert (made.bake, made.env["VLLM_LOGGING_LEVEL"], made.engine["cudagraph-capture-sizes"]) == ((), "INFO", [2])


def head_pruned(tmp_path: Path, keepset: str = "12k.json") -> tuple[str, Path]:
    """Write a profile that prunes its head, and a checkpoint for it."""
    steps = (
        '[[bake]]\nstep = "untie-head"\nbits = "none"\n[[bake]]\nstep = "prune-head"\nallow = ["special", "template"]'
    )
    name = own(tmp_path / "own", f'keepset = "{keepset}"\n{steps}\n[machine.cpu.engine]\nseed = 1')
    Path(tmp_path / "own/my.toml").write_text(Path(name).read_text().replace("window = 24\n", ""))
    (tmp_path / "own/12k.json").write_text(json.dumps(KEPT))
    return name, write_checkpoint(tmp_path / "model", text_config(), arrays(text_config()))


@pytest.mark.parametrize(
    "flags",
    [[], ["--keepset", "KEEPSET"], ["--set", "keepset=other.json"]],
    ids=["its own", "given", "another beside it"],
)
def test_keep_set_travels_and_the_head_is_pruned_to_it(flags: list[str], tmp_path: Path) -> None:
    name, model = head_pruned(tmp_path)
    for folder in (tmp_path, tmp_path / "own"):
        (folder / "other.json").write_text(json.dumps(KEPT))
    given = [flag.replace("KEEPSET", str(tmp_path / "other.json")) for flag in flags]
    assert cli.main(["submission", name, str(tmp_path / "made"), "--weights", str(model), *given]) == 0
    (tmp_path / "own").rename(tmp_path / "elsewhere")
    profile = read_back(tmp_path / "made", Machine.CPU)
    kept = {(): "12k.json", ("--keepset",): "keepset.json", ("--set",): "other.json"}[tuple(given[:1])]
    assert profile.keepset == kept
    assert [path.name for path in (tmp_path / "made").glob("*.json")].count(kept) == 1
    assert len(list((tmp_path / "made").glob("*.json"))) == 2
    prepared = prepare(profile, tmp_path / "made", tmp_path / "cache")
    assert json.loads((prepared.model / "config.json").read_text())["lm_head_keep_ids"] == KEPT


def test_the_file_of_the_rows_that_a_head_has_travels_as_well(tmp_path: Path) -> None:
    name, model = head_pruned(tmp_path)
    Path(name).write_text(
        Path(name).read_text().replace('step = "prune-head"', 'step = "prune-head"\nof = "rows.json"')
    )
    (tmp_path / "own/rows.json").write_text("[1]")
    assert cli.main(["submission", name, str(tmp_path / "made"), "--weights", str(model)]) == 0
    assert (tmp_path / "made/rows.json").read_text() == "[1]"


@pytest.mark.parametrize(
    ("lacks", "said"),
    [
        ("12k.json", "bakes with 12k.json, which is no file beside it"),
        ("Mine_below.toml", "Mine_below.toml can't be read"),
    ],
)
def test_file_that_lacks_is_named_before_anything_is_written(
    lacks: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, _ = head_pruned(tmp_path)
    (tmp_path / "own" / lacks).unlink()
    assert cli.main(["submission", name, str(tmp_path / "made")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"Mine_below.toml"', '"../Mine_below.toml"', "carries only what lies beside it"),
        ('"12k.json"', '"../12k.json"', "is no file beside it"),
        ('"Mine_below.toml"', '"./my.toml"', "extends itself"),
        ('"Mine_below.toml"', "5", "which is no name"),
        ('"Mine_below.toml"', '"common"\nsummary = "x"\nanswers = "exact"', "no Hub id; fetch them, then --weights"),
        ("keepset =", 'weights = { uri = "../model" }\nkeepset =', "no Hub id; fetch them, then --weights"),
    ],
)
def test_what_a_submission_cannot_carry_is_refused(
    old: str, new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, _ = head_pruned(tmp_path)
    for file in ("Mine_below.toml", "12k.json"):
        (tmp_path / file).write_text((tmp_path / "own" / file).read_text())
    Path(name).write_text(Path(name).read_text().replace(old, new))
    assert cli.main(["submission", name, str(tmp_path / "made")]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "made").exists()


def test_imported_profile_becomes_a_submission_that_is_read_back(tmp_path: Path) -> None:
    env = {"WEIGHTS_BUCKET": "hf://buckets/race/w", "CENTROID_TOP_K": "48", "MAX_MODEL_LEN": "2048"}
    (tmp_path / "manifest.json").write_text(json.dumps({"name": "theirs", "env": env}))
    cli.main(["import-manifest", str(tmp_path / "manifest.json"), "--out", str(tmp_path / "imported.toml")])
    model = write_checkpoint(tmp_path / "model", text_config(), arrays(text_config()))
    words = ("--weights", str(model), "--configuration-only")
    assert cli.main(["submission", str(tmp_path / "imported.toml"), str(tmp_path / "made"), *words]) == 0
    made = read_back(tmp_path / "made")
    assert made.engine["max-model-len"] == 2048
    assert replace(load(str(tmp_path / "imported.toml"), Machine.A10G), weights=made.weights) == made
    assert prepare(made, tmp_path / "made", tmp_path / "cache").model == tmp_path / "made/model"
