"""A public submission's manifest becomes a profile that the launcher takes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from paddock_stack import cli
from paddock_stack.launcher import checks
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine
from paddock_stack.recipe.catalogue import LEVERS, find_lever
from paddock_stack.recipe.importing import BadRecipe, import_manifest

HERE = Path(__file__).parent


def test_realistic_manifest_becomes_the_golden_profile_and_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "imported.toml"
    assert cli.main(["import-manifest", str(HERE / "manifest.json"), "--out", str(out)]) == 0
    table = capsys.readouterr().out.rsplit("\n", 2)[0] + "\n"
    assert out.read_text() == (HERE / "golden.toml").read_text()
    assert table == (HERE / "golden.txt").read_text()


def test_imported_profile_passes_the_launchers_checks(tmp_path: Path) -> None:
    cli.main(["import-manifest", str(HERE / "manifest.json"), "--out", str(tmp_path / "imported.toml")])
    profile = load(str(tmp_path / "imported.toml"), Machine.A10G)
    checks.check_profile(profile)
    assert (profile.window, profile.centroid_top_k, profile.speculation.tokens) == (192, 48, 7)
    assert profile.speculation.drafter.sha256.startswith("5d41")
    assert [step["step"] for step in profile.steps] == ["prune-head"]


def test_every_variable_of_the_manifest_is_in_the_table() -> None:
    manifest = json.loads((HERE / "manifest.json").read_text())
    assert {row.name for row in import_manifest(HERE / "manifest.json").rows} == set(manifest["env"])


def test_exact_name_comes_before_a_pattern_and_an_unknown_one_has_none() -> None:
    assert find_lever("FA_SLIDING") is not find_lever("FA_SLIDING_DIAG")
    assert find_lever("LOOPGRAPH_WARMUP_CALLS") is not None
    assert find_lever("SOMETHING_ELSE") is None
    assert len({lever.name for lever in LEVERS}) == len(LEVERS)


def test_cheat_stays_refused_and_what_was_off_stays_off(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"model_id": "a/b", "env": {"PRECACHE_BENCH": "1", "ONEGRAPH": "0", "MINE": "1"}}))
    fates = {row.name: row.fate for row in import_manifest(path).rows}
    assert fates == {"PRECACHE_BENCH": "refused", "ONEGRAPH": "off", "MINE": "unknown"}


@pytest.mark.parametrize(
    "env",
    [
        {"SLIDING_WINDOW": "wide"},
        {"HF_OVERRIDES": "{"},
        {"SPECULATIVE_CONFIG": "[]"},
        {"SPECULATIVE_CONFIG": '{"method": "ngram"}'},
    ],
)
def test_value_of_another_kind_is_refused(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"env": env}))
    with pytest.raises(BadRecipe, match=next(iter(env))):
        import_manifest(tmp_path / "manifest.json")


def test_toml_is_read_back_as_it_was(tmp_path: Path) -> None:
    from paddock_stack.recipe.toml import written

    tables = {"a": 'quote " and \\ and ü', "b": [1, 2], "c": {"d": True, "e": {"f": 1.5}}, "g": [{"step": "x"}]}
    assert tomllib.loads(written(tables)) == tables
