"""Profiles are read strictly and put together in one order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddock_stack import cli
from paddock_stack.bake.steps.catalogue import read_step
from paddock_stack.profiles.catalogue import DEFAULT, NAMES, load, read_setting
from paddock_stack.profiles.schema import Attention, BadProfile, Class, Machine


@pytest.mark.parametrize("machine", list(Machine))
@pytest.mark.parametrize("name", NAMES)
def test_every_profile_has_a_variant_for_every_machine_with_steps_that_exist(name: str, machine: Machine) -> None:
    profile = load(name, machine)
    assert (profile.name, profile.machine) == (name, machine)
    assert [read_step(step).NAME for step in profile.steps] == [step["step"] for step in profile.steps]
    assert profile.expected
    assert profile.gates


@pytest.mark.parametrize("name", NAMES)
def test_variant_that_differs_says_so(name: str) -> None:
    here = load(name, Machine.CPU)
    lacking = {"CUSTOM", "V2", *(["centroids"] if here.speculation.tokens else [])}
    lacking |= {"Marlin"} if here.answers is not Class.EXACT else set()
    assert not [each for each in lacking if each not in " ".join(here.differs)]
    assert load(name, Machine.H200).differs
    assert not load(name, Machine.A10G).differs


def test_default_profile_is_what_the_table_says() -> None:
    profile = load(DEFAULT, Machine.A10G)
    assert [step["step"] for step in profile.steps] == ["untie-head"]
    assert profile.levers.attention is Attention.FIXED_SPLIT
    assert profile.levers.skinny
    assert [load(DEFAULT, machine).levers.persistent_norms for machine in Machine] == [True, True, False]
    assert 6 <= profile.speculation.tokens <= 7


def test_without_our_int4_product_the_gates_are_baked_back() -> None:
    profile = load(DEFAULT, Machine.A10G, {"levers.skinny": False})
    assert [step["step"] for step in profile.steps] == ["untie-head", "dequant-ple-gate"]


def test_reproduction_is_labelled() -> None:
    profile = load("pruned-osoi5-repro", Machine.A10G)
    assert "not for users" in profile.warning
    assert profile.answers is Class.MODEL_CHANGING
    assert (profile.window, profile.centroid_top_k) == (192, 48)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"speed": 1}, "has no key 'speed'"),
        ({"levers.speed": True}, r"levers has no key 'speed'"),
        ({"engine.trust-remote-code": True}, "trust-remote-code is no option"),
        ({"speculation.tokens": "six"}, "must be of type int"),
        ({"levers.skinny": 1}, "must be of type bool"),
        ({"levers.attention": "3d"}, "must be one of 2d, fixed_split, native, auto"),
        ({"bake": [{"name": "x"}]}, "must be a list of bake steps"),
        ({"warm_up.prompts": 0}, "needs at least one prompt"),
        ({"env": {"A": 1}}, "must give a text"),
        ({"levers": 3}, "must be a table"),
        ({"speculation.tokens": -1}, r"speculation\.tokens must be 0 or more"),
        ({"window": -1}, "window must be 0 or more"),
        ({"engine.disable-log-stats": True}, "disable-log-stats is no option"),
        ({"engine.compilation-config": '{"cudagraph_capture_sizes": [1]}'}, "compilation-config must be a table"),
        ({"engine.cudagraph-capture-sizes": ["1", "--trust-remote-code"]}, "must be a list of whole numbers"),
        ({"engine.dtype": ["auto", "--trust-remote-code"]}, r"engine\.dtype must be one value"),
    ],
)
def test_unknown_key_or_other_type_is_refused_by_name(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadProfile, match=sentence):
        load(DEFAULT, Machine.A10G, settings)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('extends = "mine.toml"', "extends itself"),
        ("[machine.a100]", "has a variant for 'a100'"),
        ('extends = "common"\nsummary = "x"', "lacks a key"),
        ("not toml", "can't be read"),
    ],
)
def test_file_of_ones_own_is_read_as_strictly(text: str, sentence: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(BadProfile, match=sentence):
        load("mine.toml", Machine.A10G)


def test_setting_is_a_toml_value_or_else_text() -> None:
    assert read_setting("speculation.tokens=7") == ("speculation.tokens", 7)
    assert read_setting("levers.skinny=false") == ("levers.skinny", False)
    assert read_setting("weights.uri=google/gemma=x") == ("weights.uri", "google/gemma=x")
    with pytest.raises(BadProfile, match="takes key=value"):
        read_setting("levers.skinny")


def test_list_and_one_profile_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["profiles", "--machine", "cpu"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(NAMES)
    assert cli.main(["profiles", "int4-fast", "--machine", "a10g"]) == 0
    assert '"skinny": true' in capsys.readouterr().out
