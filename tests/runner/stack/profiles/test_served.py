"""Every profile's CPU variant starts on real vLLM, answers text, image and sound, and is consistent with itself."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from paddock_stack.launcher import command
from paddock_stack.launcher.preparing import Prepared, prepare
from paddock_stack.profiles.catalogue import NAMES, load
from paddock_stack.profiles.schema import Machine, Profile
from tests.runner.stack.serving.asked import PROMPTS, VOCABULARY
from tests.runner.stack.serving.zygote import Zygote

pytestmark = pytest.mark.vllm

TOKENS = 24
IMAGE, AUDIO = 11, 14
MEDIA = [{"prompt": [2, 5, IMAGE, 300], "image": (48, 48)}, {"prompt": [2, 5, AUDIO, 300], "audio": 8000}]
OF_THE_SERVER = ("enable-log-requests", "disable-uvicorn-access-log", "disable-log-stats")
# The two paths round differently: fp32 keeps them together; vLLM's int4 kernel for the CPU multiplies in float16.
NEAR_TIE = {"float32": 1e-3, "float16": 0.1}


@pytest.fixture(scope="module")
def keepset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a keep-set of the specials, bytes and two of three other tokens."""
    folder = tmp_path_factory.mktemp("keepset")
    prompts = {token for prompt in PROMPTS for token in prompt}
    kept = sorted({*range(300), *(token for token in range(VOCABULARY) if token % 3), *prompts})
    (folder / "keepset.json").write_text(json.dumps(kept))
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_cpu_variant_answers_everything_and_agrees_with_itself(
    zygote: Zygote, checkpoints: Path, keepset: Path, tmp_path: Path, name: str
) -> None:
    profile = load(name, Machine.CPU, _places(checkpoints, name))
    prepared = prepare(profile, keepset, tmp_path)
    told = _serve(zygote, profile, prepared)
    assert told["again"] == told["tokens"]
    assert [len(tokens) for tokens in (*told["tokens"], *told["seen"])] == [TOKENS] * 4
    assert len({token for tokens in told["tokens"] for token in tokens}) > 8  # or equality would prove nothing
    assert (told["drafts"]["drafted"] > 0) == (profile.speculation.tokens > 0)
    _check_scores(told, NEAR_TIE[profile.engine["dtype"]])
    plain = load(name, Machine.CPU, {**_places(checkpoints, name), "speculation.tokens": 0})
    assert _serve(zygote, plain, prepared)["tokens"] == told["tokens"]


def _places(checkpoints: Path, name: str) -> dict[str, Any]:
    drafts = load(name, Machine.CPU).speculation.tokens > 0
    drafter = {"speculation.drafter.uri": str(checkpoints / "drafter")} if drafts else {}
    return {"weights.uri": str(checkpoints / "multimodal"), **drafter}


def _serve(zygote: Zygote, profile: Profile, prepared: Prepared) -> dict[str, Any]:
    said = command.options(profile, prepared.drafter)
    options = {key.replace("-", "_"): value for key, value in said.items() if key not in OF_THE_SERVER}
    told: dict[str, Any] = zygote.call(
        "tests.runner.stack.profiles.inside:serve",
        env=dict(profile.env) | command.switches_of(profile.levers),
        folder=str(prepared.model),
        options=options,
        prompts=PROMPTS,
        max_tokens=TOKENS,
        media=MEDIA,
    )
    return told


def _check_scores(told: dict[str, Any], near_tie: float) -> None:
    """Log-probabilities are finite and none over 0; decoded ids are the scoring path's best, near-ties apart."""
    for prompt, scores in zip(PROMPTS, told["scores"], strict=True):
        own = scores[len(prompt) - 1 :]
        assert len(own) == TOKENS
        assert all(math.isfinite(value) and value <= 1e-6 for pair in own for value in pair)
        assert all(best - chosen <= near_tie for chosen, best in own), own
        assert all(not math.isnan(value) and value <= 1e-6 for pair in scores for value in pair)
