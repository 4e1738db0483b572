"""vLLM's command line and environment, as a profile gives them."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from paddock_stack.launcher import checks, command
from paddock_stack.plugin import switches
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Levers, Machine
from tests.runner.stack.serving.zygote import Zygote

SERVED = command.Served(Path("/m"), Path("/d"), "gemma", "127.0.0.1", 8000)


def _value(words: list[str], option: str) -> Any:
    return json.loads(words[words.index(option) + 1])


def test_default_profile_says_all_of_it() -> None:
    words = command.arguments(load("int4-fast", Machine.A10G), SERVED)
    speculating = {"method": "mtp", "model": "/d", "num_speculative_tokens": 6, "use_local_argmax_reduction": True}
    assert _value(words, "--speculative-config") == speculating
    assert words[words.index("--attention-backend") + 1] == "CUSTOM"
    assert words[words.index("--middleware") + 1] == command.GATE
    assert "--no-enable-prefix-caching" in words
    assert "--async-scheduling" in words
    assert "--enforce-eager" not in words


@pytest.mark.parametrize(("name", "told"), [("int4-mtp-2d", "2d"), ("int4-fast", "fixed_split")])
def test_plugin_is_told_which_attention_the_name_custom_means(tmp_path: Path, name: str, told: str) -> None:
    profile = load(name, Machine.A10G)
    assert command.options(profile, None)["attention-backend"] == "CUSTOM"
    assert command.environment(profile, {}, tmp_path)["PADDOCK_ATTENTION"] == told


def test_exact_profile_does_not_speculate() -> None:
    assert "--speculative-config" not in command.arguments(load("exact-bf16", Machine.A10G), SERVED)


def test_every_switch_of_the_plugin_stands_in_the_additional_configuration() -> None:
    profile = load("int4-fast", Machine.A10G)
    said = command.additional_config(profile)["paddock_stack"]
    assert checks.OURS - {switches.STEPTIME} <= set(said)  # the probe changes nothing that is compiled
    assert {name: said[name] for name in command.switches_of(profile.levers)} == command.switches_of(profile.levers)


@pytest.mark.parametrize("lever", [field.name for field in dataclasses.fields(Levers)])
def test_lever_changes_the_additional_configuration_and_the_recorded_hash(lever: str) -> None:
    profile = load("int4-fast", Machine.A10G)
    value = getattr(profile.levers, lever)
    other = load("int4-fast", Machine.A10G, {f"levers.{lever}": "native" if lever == "attention" else not value})
    assert command.additional_config(other) != command.additional_config(profile)
    assert command.config_hash(other) != command.config_hash(profile)


def test_profile_wins_over_the_inherited_environment_and_caches_do_not(tmp_path: Path) -> None:
    inherited = {"VLLM_CPU_KVCACHE_SPACE": "9", "VLLM_CACHE_ROOT": "/mine", "PATH": "/bin"}
    env = command.environment(load("exact-bf16", Machine.CPU), inherited, tmp_path)
    assert (env["VLLM_CPU_KVCACHE_SPACE"], env["VLLM_CACHE_ROOT"], env["PATH"]) == ("1", "/mine", "/bin")
    assert env["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "inductor")
    assert env["PADDOCK_SKINNY"] == "0"


@pytest.mark.vllm
def test_vllm_keeps_what_it_compiled_apart_by_lever(zygote: Zygote, checkpoints: Path) -> None:
    task = "tests.runner.stack.profiles.inside:config_hash"
    folder = str(checkpoints / "text")
    with_lever = command.additional_config(load("int4-fast", Machine.A10G))
    without = command.additional_config(load("int4-fast", Machine.A10G, {"levers.skinny": False}))
    keys = [zygote.call(task, folder=folder, additional=each) for each in (with_lever, without, with_lever)]
    assert keys[0] == keys[2] != keys[1]
