"""What a manifest may say."""

import json
from typing import Any

import pytest

from runner.manifests import BUNDLED, BadManifest, parse_manifest

GOOD: dict[str, Any] = {
    "name": "mine",
    "model_id": "google/gemma-4-E4B-it",
    "served_model_name": "gemma-4-e4b-it",
    "port": 8000,
    "serve": ["python", "serve.py"],
}


def test_a_plain_manifest_is_read_with_its_defaults() -> None:
    manifest = parse_manifest(json.dumps({**GOOD, "license": "MIT"}).encode())
    assert (manifest.dependencies, manifest.env, manifest.description) == ([], {}, "")
    assert manifest.model_id == "google/gemma-4-E4B-it"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"port": 80}, "port"),
        ({"port": 65536}, "port"),
        ({"port": "8000"}, "port"),
        ({"port": True}, "port"),
        ({"serve": []}, "serve"),
        ({"serve": "python serve.py"}, "serve"),
        ({"serve": [" "]}, "serve"),
        ({"serve": ["python", "a\0b"]}, "serve"),
        ({"model_id": "../other"}, "model_id"),
        ({"model_id": "/etc"}, "model_id"),
        ({"model_id": "a//b"}, "model_id"),
        ({"name": ""}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"env": {"A B": "1"}}, "env"),
        ({"env": {"PORT": "1"}}, "env"),
        ({"env": {"N": 1}}, "env"),
        ({"dependencies": ["--index-url=http://x"]}, "dependencies"),
        ({"dependencies": "vllm"}, "dependencies"),
        ({"served_model_name": None}, "served_model_name"),
    ],
)
def test_a_wrong_field_is_named(change: dict[str, object], where: str) -> None:
    with pytest.raises(BadManifest, match=f"wrong at {where}"):
        parse_manifest(json.dumps({**GOOD, **change}).encode())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"port": NaN}',
        b'{"port": 1e999}',
        b'{"port": Infinity}',
        b"[" * 60_000,
        b" " * 70_000,
        b'{"port": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_no_strict_json_is_refused(content: bytes) -> None:
    with pytest.raises(BadManifest):
        parse_manifest(content)


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_a_missing_field_is_named(missing: str) -> None:
    with pytest.raises(BadManifest, match=f"wrong at {missing}"):
        parse_manifest(json.dumps({key: value for key, value in GOOD.items() if key != missing}).encode())


def _bundled(**change: object) -> bytes:
    plain = {key: value for key, value in GOOD.items() if key != "serve"}
    return json.dumps({**plain, "profile": "int4-fast", **change}).encode()


def test_a_profile_without_a_command_is_served_by_the_bundled_stack() -> None:
    overrides = {"speculation.tokens": 7, "levers.skinny": False, "engine.dtype": "bfloat16"}
    manifest = parse_manifest(_bundled(overrides=overrides))
    assert tuple(manifest.serve) == BUNDLED
    assert (manifest.profile, manifest.overrides) == ("int4-fast", overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        {"bake": [], "engine.cudagraph-capture-sizes": [1, 8], "env.VLLM_LOGGING_LEVEL": "INFO"},
        {"bake": [{"step": "drop-layers", "layers": [2, 3]}], "env": {"OMP_NUM_THREADS": "2"}},
        {"engine": {"compilation-config": {"inductor_compile_config": {"triton.cudagraphs": False}}}},
    ],
)
def test_lists_tables_and_variables_may_be_overridden(overrides: dict[str, object]) -> None:
    assert parse_manifest(_bundled(overrides=overrides)).overrides == overrides


@pytest.mark.parametrize("profile", ["my.toml", "My_Profile.v2.toml", "exact-bf16"])
def test_a_profile_may_be_a_file_of_the_submission(profile: str) -> None:
    assert parse_manifest(_bundled(profile=profile)).profile == profile


def _deep(value: object, levels: int) -> object:
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"levers.skinny": None}, "'levers.skinny' is null"),
        ({"engine": {"hf-overrides": [1, {"a": None}]}}, r"'engine.hf-overrides\[1\].a' is null"),
        ({"engine": {"d type": 1}}, "'engine.d type'.*letters, digits"),
        ({"engine..dtype": 1}, "'engine..dtype'.*letters, digits"),
        ({"": 1}, "''.*letters, digits"),
        ({"a" * 201: 1}, "letters, digits"),
        ({"summary": "x" * 4097}, "'summary' has more than 4096 characters"),
        ({"summary": "a\0b"}, "'summary' holds a character"),
        ({"summary": "\ud800"}, "'summary' holds a character"),
        ({"window": 2**63}, "'window' is a number of more than 64 bits"),
        ({"engine": _deep(1, 9)}, "'engine.a.a.a.a.a.a.a.a' is nested more than 8 deep"),
        ({"engine": _deep(1, 900)}, "nested more than 8 deep"),
        ({str(number): 1 for number in range(101)}, "more than 100"),
        ({"env.PORT": "1"}, "PORT is set by the runner"),
        ({"env": {"HOME": "/root"}}, "HOME is set by the runner"),
        ({"env.A-B": "1"}, "'A-B' is no variable name"),
        ({"env.HF_TOKEN": "hf_x"}, "HF_TOKEN is named like a secret"),
        ({"env": {"VLLM_API_KEY": "x"}}, "VLLM_API_KEY is named like a secret"),
    ],
)
def test_an_override_out_of_bounds_is_named_with_the_reason(overrides: dict[str, object], said: str) -> None:
    with pytest.raises(BadManifest, match=f"wrong at overrides: .*{said}") as refused:
        parse_manifest(_bundled(overrides=overrides))
    assert len(refused.value.message) < 500
    assert "hf_x" not in refused.value.message


def test_a_command_beside_a_profile_is_the_submissions_own() -> None:
    manifest = parse_manifest(json.dumps({**GOOD, "profile": {"any": "thing"}, "overrides": 5}).encode())
    assert (manifest.serve, manifest.profile, manifest.overrides) == (GOOD["serve"], "", {})


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"profile": "../other"}, "profile"),
        ({"profile": 5}, "profile"),
        ({"profile": ""}, "serve"),
        ({"overrides": ["levers.skinny"]}, "overrides"),
        ({"profile": "a/b.toml"}, "profile"),
        ({"profile": "..toml"}, "profile"),
        ({"profile": "mine.json.."}, "profile"),
    ],
)
def test_a_profile_or_override_of_a_wrong_form_is_named(change: dict[str, object], where: str) -> None:
    with pytest.raises(BadManifest, match=f"wrong at {where}"):
        parse_manifest(_bundled(**change))
