"""A public submission's manifest becomes a profile that the launcher takes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from paddock_stack import cli
from paddock_stack.launcher import checks
from paddock_stack.launcher.preparing import prepare
from paddock_stack.launcher.reading import submitted
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine
from paddock_stack.recipe.catalogue import LEVERS, find_lever
from paddock_stack.recipe.importing import BadRecipe, Imported, import_manifest
from tests.runner.stack.bake.checkpoints import read_folder
from tests.runner.stack.bake.test_cut_heads import FEWER, ROWS, cut_elsewhere

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
    assert {row.name.partition(".")[0] for row in import_manifest(HERE / "manifest.json").rows} == set(manifest["env"])


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


def imported(tmp_path: Path, **env: object) -> Imported:
    """Import a manifest whose environment is `env`; what is no text is written as JSON."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in env.items()}
    (tmp_path / "manifest.json").write_text(json.dumps({"model_id": "a/b", "env": texts}))
    return import_manifest(tmp_path / "manifest.json")


@pytest.mark.parametrize(
    "env",
    [
        {"SLIDING_WINDOW": "wide"},
        {"HF_OVERRIDES": "{"},
        {"HF_OVERRIDES": {"text_config": 3}},
        {"HF_OVERRIDES": {"text_config": {"sliding_window": "192"}}},
        {"HF_OVERRIDES": {"text_config": {"sliding_window": True}}},
        {"SPECULATIVE_CONFIG": []},
        {"SPECULATIVE_CONFIG": {"method": "ngram"}},
        {"SPECULATIVE_CONFIG": {"num_speculative_tokens": "7"}},
        {"SPECULATIVE_CONFIG": "[" * 100_000},
        {"GPU_MEMORY_UTILIZATION": "high"},
        {"GPU_MEMORY_UTILIZATION": "nan"},
        {"GPU_MEMORY_UTILIZATION": "1.5"},
        {"OVERRIDE_GENERATION_CONFIG": {"temperature": None}},
        {"OVERRIDE_GENERATION_CONFIG": '{"temperature": NaN}'},
    ],
)
def test_value_of_another_kind_is_refused_in_a_sentence(
    env: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadRecipe, match=next(iter(env))):
        imported(tmp_path, **env)
    words = ["import-manifest", str(tmp_path / "manifest.json"), "--out", str(tmp_path / "made.toml")]
    assert cli.main(words) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "made.toml").exists()


@pytest.mark.parametrize("content", ["[]", '{"env": 3}', '{"env": {"A": "\\ud800"}}', "[" * 100_000, "\udcff"])
def test_what_is_no_manifest_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(BadRecipe, match="is no manifest"):
        import_manifest(tmp_path / "manifest.json")


def test_a_profile_that_cannot_be_loaded_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(tmp_path, GENERATION_CONFIG="vllm")
    for out, said in (("made", "must end in .toml"), ("none/made.toml", "can't be written")):
        words = ["import-manifest", str(tmp_path / "manifest.json"), "--out", str(tmp_path / out)]
        assert cli.main(words) == 1
        assert said in capsys.readouterr().err
    imported(tmp_path, SPECULATIVE_CONFIG={"num_speculative_tokens": -1})
    words = ["import-manifest", str(tmp_path / "manifest.json"), "--out", str(tmp_path / "made.toml")]
    assert cli.main(words) == 1
    assert "0 or more" in capsys.readouterr().err
    assert not (tmp_path / "made.toml").exists()


_SPLIT = {"SPLITKV_VERIFY": "1"}
_DRAFTS = {**_SPLIT, "SPECULATIVE_CONFIG": {"model": "a/drafter", "num_speculative_tokens": 6}}


@pytest.mark.parametrize(
    ("env", "name", "fate", "how"),
    [
        ({"HF_OVERRIDES": {"num_hidden_layers": 37}}, "HF_OVERRIDES.num_hidden_layers", "dropped", "bake"),
        (
            {"HF_OVERRIDES": {"text_config": {"sliding_window": 192, "final_logit_softcapping": 0}}},
            "HF_OVERRIDES.text_config.final_logit_softcapping",
            "dropped",
            "bake",
        ),
        (
            {"HF_OVERRIDES": {"text_config": {"sliding_window": 160}}, "SLIDING_WINDOW": "192"},
            "HF_OVERRIDES.text_config.sliding_window",
            "conflict",
            "SLIDING_WINDOW holds",
        ),
        ({"ATTENTION_BACKEND": "FLASH_ATTN"}, "ATTENTION_BACKEND", "dropped", "TRITON_ATTN"),
        ({"DRAFTER_BUCKET": "hf://buckets/a/b"}, "DRAFTER_BUCKET", "dropped", "SPECULATIVE_CONFIG"),
        ({"DRAFTER_SHA256": "5d41"}, "DRAFTER_SHA256", "dropped", "SPECULATIVE_CONFIG"),
        ({**_DRAFTS, "DRAFTER_BUCKET": "hf://buckets/a/b"}, "SPECULATIVE_CONFIG.model", "conflict", "DRAFTER_BUCKET"),
        (
            {**_SPLIT, "SPECULATIVE_CONFIG": {"num_speculative_tokens": 6, "draft_sample_method": "greedy"}},
            "SPECULATIVE_CONFIG.draft_sample_method",
            "dropped",
            "no key",
        ),
        (
            {**_SPLIT, "SPECULATIVE_CONFIG": {"num_speculative_tokens": 6, "use_local_argmax_reduction": False}},
            "SPECULATIVE_CONFIG.use_local_argmax_reduction",
            "conflict",
            "local argmax",
        ),
        (
            {"WEIGHTS_BUCKET": "hf://buckets/a/b", "SERVE_MODEL_OVERRIDE": "/tmp/x"},
            "SERVE_MODEL_OVERRIDE",
            "conflict",
            "WEIGHTS_BUCKET holds",
        ),
        ({"SERVE_MODEL_OVERRIDE": "/tmp/x", "MODEL_ID": "c/d"}, "MODEL_ID", "conflict", "SERVE_MODEL_OVERRIDE holds"),
        (
            {"LM_HEAD_PRUNE": "0", "LM_HEAD_KEEPSET_BUCKET": "hf://buckets/a/k"},
            "LM_HEAD_KEEPSET_BUCKET",
            "conflict",
            "LM_HEAD_PRUNE is off",
        ),
        ({"WARMUP_MAX_TOKENS": "4"}, "WARMUP_MAX_TOKENS", "conflict", "at least 16"),
        ({**_DRAFTS, "SPLITKV_VERIFY": "0"}, "SPLITKV_VERIFY", "conflict", "attention = 2d"),
        ({"SPECULATIVE_CONFIG": {"num_speculative_tokens": 6}}, "SPLITKV_VERIFY", "conflict", "attention = 2d"),
    ],
)
def test_what_the_profile_does_not_do_has_a_row_of_its_own(
    env: dict[str, object], name: str, fate: str, how: str, tmp_path: Path
) -> None:
    rows = [row for row in imported(tmp_path, **env).rows if row.fate in ("dropped", "conflict")]
    assert [(row.name, row.fate) for row in rows] == [(name, fate)]
    assert how in rows[0].how
    assert len({row.name for row in imported(tmp_path, **env).rows}) == len(imported(tmp_path, **env).rows)


@pytest.mark.parametrize(
    "env",
    [
        {"HF_OVERRIDES": {"text_config": {"sliding_window": 192}}, "SLIDING_WINDOW": "192"},
        {"ATTENTION_BACKEND": "TRITON_ATTN"},
        {**_DRAFTS, "DRAFTER_SHA256": "5d41"},
        {**_SPLIT, "SPECULATIVE_CONFIG": {"method": "mtp", "model": "a/d", "use_local_argmax_reduction": True}},
        {"WEIGHTS_BUCKET": "hf://buckets/a/b", "SERVE_MODEL_OVERRIDE": "hf://buckets/a/b"},
        {"WARMUP_SEED": "0", "WARMUP_MAX_TOKENS": "16"},
    ],
)
def test_what_agrees_has_no_row_but_its_own(env: dict[str, object], tmp_path: Path) -> None:
    assert {row.name: row.fate for row in imported(tmp_path, **env).rows}.keys() == env.keys()
    assert not {row.fate for row in imported(tmp_path, **env).rows} & {"dropped", "conflict", "off"}


def test_a_warm_up_seed_of_zero_is_a_seed(tmp_path: Path) -> None:
    assert imported(tmp_path, WARMUP_SEED="0").profile["warm_up"] == {"seed": 0}


@pytest.mark.parametrize(
    ("env", "keepset", "steps"),
    [
        ({"LM_HEAD_PRUNE": "1"}, "keepset.json", [{"step": "prune-head"}]),
        ({"LM_HEAD_KEEPSET_BUCKET": "hf://buckets/a/k"}, "keepset.json", [{"step": "prune-head"}]),
        ({"PCK04_KEEPSET": "pck.json"}, "keepset.json", [{"step": "prune-head", "of": "keepset.json"}]),
        (
            {"PCK04_KEEPSET": "pck.json", "LM_HEAD_PRUNE": "1"},
            "keepset.json",
            [{"step": "prune-head", "of": "pck04.json"}],
        ),
        ({"LM_HEAD_PRUNE": "0", "LM_HEAD_KEEPSET_BUCKET": "hf://buckets/a/k"}, None, None),
    ],
)
def test_each_way_to_prune_becomes_a_step(
    env: dict[str, object], keepset: str | None, steps: list[dict[str, str]] | None, tmp_path: Path
) -> None:
    made = imported(tmp_path, **env).profile
    assert (made.get("keepset"), made.get("bake")) == (keepset, steps)


@pytest.mark.parametrize("fewer", [False, True], ids=["declared alone", "pruned further"])
def test_a_head_that_was_cut_elsewhere_is_baked_by_the_imported_profile(fewer: bool, tmp_path: Path) -> None:
    """From a public manifest to a folder that says which tokens its rows score, though config.json didn't."""
    (tmp_path / "theirs").mkdir()
    model = cut_elsewhere(tmp_path / "theirs/in", "none", tmp_path)
    imported(tmp_path, PCK04_KEEPSET="pck.json", WEIGHTS_BUCKET=str(model), **({"LM_HEAD_PRUNE": "1"} if fewer else {}))
    home = tmp_path / "home"
    home.mkdir()
    words = ["import-manifest", str(tmp_path / "manifest.json"), "--out", str(home / "mine.toml")]
    assert cli.main(words) == 0
    (home / ("pck04.json" if fewer else "keepset.json")).write_text(json.dumps(ROWS))
    if fewer:
        (home / "keepset.json").write_text(json.dumps(FEWER))
    made = tmp_path / "made"
    assert cli.main(["submission", str(home / "mine.toml"), str(made), "--weights", str(model)]) == 0
    home.rename(tmp_path / "away")
    profile = submitted(made, Machine.CPU, {"MODEL_ID": str(made / "model")})
    served = prepare(profile, made, tmp_path / "cache").model
    kept = sorted(FEWER if fewer else ROWS)
    assert json.loads((served / "config.json").read_text())["lm_head_keep_ids"] == kept
    whole = read_folder(tmp_path / "untied")["lm_head.weight"][1]
    assert (read_folder(served)["lm_head.weight"][1] == whole[kept]).all()


def test_table_shows_no_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    imported(tmp_path, MINE="a\x1b[2Jb\nc")
    cli.main(["import-manifest", str(tmp_path / "manifest.json"), "--out", str(tmp_path / "made.toml")])
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in lines)
    assert len(lines) == 3


def test_toml_is_read_back_as_it_was(tmp_path: Path) -> None:
    from paddock_stack.recipe.toml import written

    tables = {
        "a": 'quote " and \\ and ü and \x7f',
        "key with blanks": {"a.b": 1},
        "b": [1, 2],
        "c": {"d": True, "e": {"f": 1.5}},
        "g": [{"step": "x"}],
    }
    assert tomllib.loads(written(tables)) == tables
