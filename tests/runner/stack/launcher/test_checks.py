"""What the launcher refuses to start, each in one sentence."""

from __future__ import annotations

from pathlib import Path
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
        ({"speculation.drafter.uri": ""}, "names none in speculation.drafter.uri"),
        ({"engine.cudagraph-capture-sizes": [1]}, "without one of at least 2"),
        ({"engine.limit-mm-per-prompt": {"image": 0, "audio": 1}}, "drops image"),
        ({"engine.limit-mm-per-prompt": {"image": {"count": 0}}}, "drops image"),
        ({"engine.limit-mm-per-prompt": {"audio": False}}, "drops audio"),
        ({"engine.compilation-config.cudagraph_capture_sizes": [1]}, "without one of at least 2"),
        ({"engine.compilation-config.max_cudagraph_capture_size": 1}, "without one of at least 2"),
        (
            {"engine.hf-overrides": {"text_config": {"sliding_window": 16}}},
            "sets sliding_window, which would not reach",
        ),
        ({"engine.hf-overrides": {"sliding_window": 16}}, "sets sliding_window, which would not reach"),
        ({"engine.hf-overrides": {"vision_config": {}}}, "sets vision_config, which would not reach"),
        ({"engine.hf-overrides": {"text_config": 3}}, "sets text_config, which would not reach"),
        ({"engine.enable-prefix-caching": True}, "set engine.enable-prefix-caching=false"),
        ({"bake": [{"step": "prune-head"}]}, "names no keepset"),
        ({"engine.linear-backend": "marlin"}, "linear-backend=marlin would take the place of our products"),
    ],
)
def test_profile_that_would_not_do_what_it_says_is_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StartRefused, match=sentence):
        checks.check_profile(load("int4-fast", Machine.A10G, settings))


def test_options_that_change_none_of_this_start() -> None:
    settings = {
        "engine.hf-overrides": {"text_config": {"skip_layers": [1]}},
        "engine.limit-mm-per-prompt": {"image": 2, "audio": {"count": 1}, "video": {}},
        "engine.cudagraph-capture-sizes": [1, 2, 8],
        "engine.compilation-config.max_cudagraph_capture_size": 8,
    }
    checks.check_profile(load("int4-fast", Machine.A10G, settings))


def test_profile_of_ones_own_says_itself_that_no_prefix_is_cached(tmp_path: Path) -> None:
    profile = tmp_path / "mine.toml"
    profile.write_text('summary = "mine"\nanswers = "exact"\nweights = { uri = "model" }\n')
    with pytest.raises(StartRefused, match=r"set engine\.enable-prefix-caching=false"):
        checks.check_profile(load(str(profile), Machine.A10G))


def test_linear_backend_may_be_named_where_ours_are_off_or_left_to_vllm() -> None:
    checks.check_profile(load("int4-fast", Machine.A10G, {"engine.linear-backend": "auto"}))
    off = {"engine.linear-backend": "marlin", "levers.skinny": False}
    checks.check_profile(load("int4-fast", Machine.A10G, off))


def test_more_than_seven_tokens_start_once_acknowledged() -> None:
    settings = {"speculation.tokens": 8, "speculation.accept_2d_fallback": True}
    checks.check_profile(load("int4-fast", Machine.A10G, settings))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("PRECACHE_BENCH", "1", "cheating"),
        ("PRECACHE_DATASET", "/somewhere", "cheating"),
        ("PADDOCK_FASTER", "1", "no variable of this stack"),
        *((name, "1", "set by the profile") for name in ("PADDOCK_SKINNY", "PADDOCK_PERSISTENT_NORMS")),
        ("VLLM_BATCH_INVARIANT", "1", "behind the profile's back"),
        ("CENTROID_TOP_K", "48", "import-manifest"),
        ("MAX_MODEL_LEN", "4096", "import-manifest"),
    ],
)
def test_variable_that_would_change_what_is_served_is_refused(name: str, value: str, sentence: str) -> None:
    with pytest.raises(StartRefused, match=sentence):
        checks.check_environment({name: value})


def test_variables_of_the_runner_and_of_caches_pass() -> None:
    names = (
        "MODEL_ID",
        "SERVED_MODEL_NAME",
        "HOST",
        "PORT",
        "HOME",
        "VLLM_CACHE_ROOT",
        "PADDOCK_STEPTIME",
        "PADDOCK_SERVER_ENV",
    )
    checks.check_environment({**dict.fromkeys(names, "x"), "PRECACHE_BENCH": "0"})


def test_keep_set_over_a_tied_head_is_refused() -> None:
    with pytest.raises(StartRefused, match="untie it first"):
        checks.check_checkpoints({**TEXT, "tie_word_embeddings": True, "lm_head_keep_ids": [1]}, None)


@pytest.mark.parametrize(("key", "tower"), [("vision_config", "image"), ("audio_config", "audio")])
def test_checkpoint_that_lost_a_tower_is_refused_and_one_of_text_alone_is_not(key: str, tower: str) -> None:
    whole = {"text_config": TEXT, "vision_config": {"hidden_size": 1}, "audio_config": {"hidden_size": 1}}
    checks.check_checkpoints(whole, None)
    checks.check_checkpoints(TEXT, None)
    assert (checks.has_towers(whole), checks.has_towers(TEXT)) == (("image", "audio"), ())
    for lost in ({name: part for name, part in whole.items() if name != key}, {**whole, key: None}):
        with pytest.raises(StartRefused, match=f"its {tower} tower was taken out"):
            checks.check_checkpoints(lost, None)


@pytest.mark.parametrize(("gone", "tower"), [("vision_tower", "image"), ("audio_tower", "audio")])
def test_weights_without_a_tower_that_the_configuration_has_are_refused(gone: str, tower: str) -> None:
    modules = [f"model.{name}.layers.0.norm" for name in ("vision_tower", "audio_tower")] + ["model.embed_tokens"]
    whole = {"text_config": TEXT, "vision_config": {"hidden_size": 1}, "audio_config": {"hidden_size": 1}}
    checks.check_towers(whole, modules)
    checks.check_towers(TEXT, ["model.embed_tokens"])
    with pytest.raises(StartRefused, match=f"the weights hold nothing of that {tower} tower"):
        checks.check_towers(whole, [module for module in modules if gone not in module])


def test_windows_that_differ_between_model_and_drafter_are_refused() -> None:
    drafter = {"model_type": "gemma4_assistant", "text_config": {**TEXT, "sliding_window": 192}}
    with pytest.raises(StartRefused, match="the model's window is 512 and its drafter's 192"):
        checks.check_checkpoints(TEXT, drafter)


@pytest.mark.parametrize(
    ("package", "missing", "lever"),
    [
        ("vllm", "choose_mp_linear_kernel", "skinny"),
        ("vllm", "default_unquantized_gemm", "skinny"),
        ("torch", "_choices_default", "persistent_norms"),
        ("torch", "InductorChoices.should_use_persistent_reduction", "persistent_norms"),
    ],
)
def test_library_without_a_place_for_a_lever_is_refused_before_the_start(
    package: str, missing: str, lever: str
) -> None:
    installed = libraries("vllm-0.33.0", "torch-2.14.0")
    source = installed[package]
    source.places = {place: told for place, told in source.places.items() if not place.endswith(f":{missing}")}
    with pytest.raises(StartRefused, match=rf"does not fit {source.release}: .*; levers\.{lever}=false serves"):
        checks.check_libraries(load("int4-fast", Machine.A10G), installed.__getitem__)
    checks.check_libraries(load("int4-fast", Machine.A10G, {f"levers.{lever}": False}), installed.__getitem__)


@pytest.mark.parametrize(
    ("machine", "vllm", "torch", "words"),
    [
        (Machine.H200, "vllm-0.23.0", "torch-2.11.0", ["unbind", "use_cascade"]),
        (Machine.A10G, "vllm-0.33.0", "torch-2.14.0", ["transpose", "split", "causal", "rswa_window"]),
    ],
)
def test_fixed_split_is_the_default_where_it_fits_and_is_refused_elsewhere(
    machine: Machine, vllm: str, torch: str, words: list[str]
) -> None:
    profile, installed = load("int4-fast", machine), libraries(vllm, torch)
    assert profile.levers.attention == "fixed_split"
    checks.check_libraries(profile, installed.__getitem__)
    said = installed["vllm"].places["vllm.v1.attention.backends.triton_attn:TritonAttentionImpl.forward"]["words"]
    assert set(words) <= set(said)
    said.remove(words[0])  # how the cache of another release may lie, nobody knows
    with pytest.raises(StartRefused, match=r"levers\.attention=2d serves with vLLM's 2D kernel"):
        checks.check_libraries(profile, installed.__getitem__)
    checks.check_libraries(load("int4-fast", machine, {"levers.attention": "2d"}), installed.__getitem__)


def libraries(vllm: str, torch: str) -> dict[str, Recording]:
    """Return the recordings of two releases, by the name of their package."""
    return {"vllm": Recording(SHAPES / f"{vllm}.json"), "torch": Recording(SHAPES / f"{torch}.json")}
