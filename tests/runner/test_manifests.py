"""What a manifest may say."""

import json
from typing import Any

import pytest

from runner.manifests import BadManifest, parse_manifest

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
