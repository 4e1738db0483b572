"""The stack writes what the runner takes: both state the bounds for themselves, and agree."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddock_stack.submissions.limits import OutOfBounds, check_manifest
from runner.manifests import BadManifest, parse_manifest

PLAIN: dict[str, Any] = {"name": "mine", "description": "", "profile": "int4-fast", "model_id": "a/b"}
PLAIN |= {"served_model_name": "gemma", "port": 8000, "dependencies": [], "env": {}}


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


TAKEN: list[dict[str, Any]] = [
    {},
    *({"profile": name} for name in ("a", "my.toml", "My_own.v2.toml", "a" * 60)),
    *({"overrides": {"engine": nested(levels)}} for levels in (0, 1, 8)),
    {"overrides": {"bake": [], "env.VLLM_X": "1", "engine.cudagraph-capture-sizes": [1, 2], "levers.skinny": True}},
    {"overrides": {"window": 2**63 - 1, "a": -(2**63), "b": 0.5, "c": "x" * 4096}},
    {"overrides": {"a.b.c.d.e.f.g.h": 1, "K" * 100: 1}},
    {"overrides": {"env": {"A_KEYS": "1", "TOKENIZERS_PARALLELISM": "0", "PATH_KEYED": ""}}},
    {"overrides": {str(number): 1 for number in range(100)}},
    {"overrides": {"summary": "x\ny\t\u202e"}},
    {"name": "x" * 200, "description": "x" * 2000, "port": 65535},
]
REFUSED: list[dict[str, Any]] = [
    *({"profile": name} for name in ("../a", "a/b.toml", ".toml", "a.", "a\n", "-a", "ä", "a" * 61)),
    *({"overrides": {"engine": nested(levels)}} for levels in (9, 10, 200)),
    *(
        {"overrides": {key: 1}}
        for key in ("", ".", "a.", "a..b", "a b", "a\n", "ä", "a/b", "K" * 101, "a.b.c.d.e.f.g.h.i")
    ),
    *({"overrides": {"engine": {key: 1}}} for key in ("", "a b", "a\0", "ä")),
    *({"overrides": {"a": [value]}} for value in (None, 2**63, -(2**63) - 1, "x" * 4097, "a\0", "\ud800")),
    *({"overrides": {f"env.{name}": "1"}} for name in ("PORT", "HOME", "MODEL_ID", "A-B", "A.B", "1A", "HF_TOKEN")),
    *({"overrides": {"env": {name: "1"}}} for name in ("HOST", "A-B", "AWS_SECRET_ACCESS_KEY", "db_password")),
    {"overrides": {str(number): 1 for number in range(101)}},
    {"overrides": {str(number): "x" * 4096 for number in range(20)}},
    *({"name": name} for name in ("", "a\nb", "x" * 201, "\u202e")),
    *({"served_model_name": ""}, {"description": "x" * 2001}, {"description": "\u202e"}),
    *({"port": 80}, {"port": 65536}),
]


@pytest.mark.parametrize("change", TAKEN)
def test_what_is_written_is_taken(change: dict[str, Any]) -> None:
    check_manifest(PLAIN | change)
    parse_manifest(json.dumps(PLAIN | change).encode())


@pytest.mark.parametrize("change", REFUSED)
def test_what_is_not_taken_is_not_written(change: dict[str, Any]) -> None:
    with pytest.raises(BadManifest) as told:
        parse_manifest(json.dumps(PLAIN | change).encode())
    with pytest.raises(OutOfBounds) as said:
        check_manifest(PLAIN | change)
    for message in (told.value.message, str(said.value)):
        assert message.isprintable()
        assert len(message) < 500
