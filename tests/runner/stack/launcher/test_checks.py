"""What the launcher refuses to start, each in one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from paddock_stack.launcher import checks
from paddock_stack.launcher.checks import StartRefused
from paddock_stack.profiles.catalogue import NAMES, load
from paddock_stack.profiles.schema import Machine
from paddock_stack.shapes.source import Recording
from tests.runner.stack.serving.zygote import ROOT

TEXT: dict[str, Any] = {"model_type": "gemma4_text", "sliding_window": 512, "tie_word_embeddings": False}
SHAPES = ROOT / "tests/runner/stack/shapes"


@pytest.mark.parametrize("machine", list(Machine))
@pytest.mark.parametrize("name", NAMES)
def test_bundled_profiles_pass(name: str, machine: Machine) -> None:
    checks.check_profile(load(name, machine))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"speculation.tokens": 8}, "8 drafted tokens are more than vLLM's split attention takes"),
        ({"speculation.drafter.uri": ""}, "names no drafter"),
        ({"engine.cudagraph-capture-sizes": [1]}, "without one of at least 2"),
        ({"engine.limit-mm-per-prompt": {"image": 0, "audio": 1}}, "drops image"),
        ({"window": 192, "engine.hf-overrides": {"text_config": {}}}, "would not reach the drafter"),
        ({"bake": [{"step": "prune-head"}]}, "names no keepset"),
    ],
)
def test_profile_that_would_not_do_what_it_says_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StartRefused, match=sentence):
        checks.check_profile(load("int4-fast", Machine.A10G, settings))


def test_more_than_seven_tokens_start_once_acknowledged() -> None:
    settings = {"speculation.tokens": 8, "speculation.accept_2d_fallback": True}
    checks.check_profile(load("int4-fast", Machine.A10G, settings))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PRECACHE_BENCH", "1", "cheating"),
        ("PRECACHE_DATASET", "/somewhere", "cheating"),
        ("PADDOCK_FASTER", "1", "no variable of this stack"),
        ("PADDOCK_SKINNY", "1", "set by the profile"),
        ("VLLM_BATCH_INVARIANT", "1", "behind the profile's back"),
        ("CENTROID_TOP_K", "48", "import-manifest"),
        ("MAX_MODEL_LEN", "4096", "import-manifest"),
    ],
)
def test_variable_that_would_change_what_is_served_is_refused(name: str, value: str, sentence: str) -> None:
    with pytest.raises(StartRefused, match=sentence):
        checks.check_environment({name: value})


def test_variables_of_the_runner_and_of_caches_pass() -> None:
    names = ("MODEL_ID", "SERVED_MODEL_NAME", "HOST", "PORT", "HOME", "VLLM_CACHE_ROOT", "PADDOCK_STEPTIME")
    checks.check_environment({**dict.fromkeys(names, "x"), "PRECACHE_BENCH": "0"})


def test_keep_set_over_a_tied_head_is_refused() -> None:
    with pytest.raises(StartRefused, match="untie it first"):
        checks.check_checkpoints({**TEXT, "tie_word_embeddings": True, "lm_head_keep_ids": [1]}, None)


def test_windows_that_differ_between_model_and_drafter_are_refused() -> None:
    drafter = {"model_type": "gemma4_assistant", "text_config": {**TEXT, "sliding_window": 192}}
    with pytest.raises(StartRefused, match="the model's window is 512 and its drafter's 192"):
        checks.check_checkpoints(TEXT, drafter)


def test_vllm_without_a_place_for_a_lever_is_refused_before_it_is_started() -> None:
    source = Recording(SHAPES / "vllm-0.33.0.json")
    source.places = {place: told for place, told in source.places.items() if "choose_mp_linear_kernel" not in place}
    with pytest.raises(StartRefused, match=r"levers\.skinny=false serves without our products"):
        checks.check_vllm(load("int4-fast", Machine.A10G), source)
    checks.check_vllm(load("int4-fast", Machine.A10G, {"levers.skinny": False}), source)


def test_fixed_split_is_the_default_where_it_fits_and_is_refused_elsewhere() -> None:
    checks.check_vllm(load("int4-fast", Machine.H200), Recording(SHAPES / "vllm-0.23.0.json"))
    with pytest.raises(StartRefused, match=r"levers\.attention=2d serves with vLLM's 2D kernel"):
        checks.check_vllm(load("int4-fast", Machine.H200), Recording(SHAPES / "vllm-0.33.0.json"))
    checks.check_vllm(load("int4-fast", Machine.A10G), Recording(SHAPES / "vllm-0.33.0.json"))
