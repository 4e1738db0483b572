"""A bundled submission's serve.py, with real vLLM and both towers behind it, over HTTP."""

from __future__ import annotations

import base64
import json
import signal
import struct
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from paddock_stack.launcher import media
from paddock_stack.submissions.writing import Wanted, write
from runner.harness import wire
from tests.conftest import eventually
from tests.runner.stack.conftest import SERVER_ENV
from tests.runner.stack.launcher.starting import clean_environment, free_port, post, status_of
from tests.runner.stack.serving.asked import PROMPTS
from tests.runner.stack.serving.scored import MODEL, score, spec

pytestmark = pytest.mark.vllm

SIDE = 64  # pixels
SAMPLES, WAV_HEADER = 16000, 44


def test_submission_is_ready_after_its_warm_up_and_answers_text_picture_and_sound(
    checkpoints: Path, tmp_path: Path
) -> None:
    folder, port = tmp_path / "mine", free_port()
    wanted = Wanted("mine", model=checkpoints / "multimodal", drafter=checkpoints / "drafter-multimodal")
    manifest = write("exact-mtp", wanted, folder)
    env = {"MODEL_ID": str(folder / "model"), "SERVED_MODEL_NAME": MODEL, "HOST": "127.0.0.1", "PORT": str(port)}
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [SERVER_ENV / "bin/python", "serve.py"],
            cwd=folder,
            env={**clean_environment(), **env, "PADDOCK_STACK_CACHE": str(tmp_path / "cache")},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        seen: set[int | None] = set()
        eventually(lambda: seen.add(status_of(port)) or 200 in seen or process.poll() is not None, within_s=300)
        assert process.poll() is None, (tmp_path / "log").read_text()[-4000:]
        assert seen <= {None, 503, 200}
        answers = [_tokens(port, prompt) for prompt in PROMPTS]
        assert [_tokens(port, prompt) for prompt in PROMPTS] == answers
        with closing(wire.Endpoint(spec(f"http://127.0.0.1:{port}"))) as endpoint:
            assert score(endpoint, PROMPTS, answers)["decoy_gap"] > 2
        assert _chat(port, {"type": "text", "text": "one"}) != _chat(port, {"type": "text", "text": "two"})
        for part in (_picture, _sound):
            first, again, other = (_chat(port, part(byte)) for byte in (b"\0", b"\0", b"\x70"))
            assert first == again
            assert first != other
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    record = json.loads((tmp_path / "cache/serving-record.json").read_text())
    assert record["model"]["sha256"] == manifest["weights_sha256"]
    assert record["drafter"]["sha256"] == manifest["drafter_sha256"]
    assert record["resolved"]["attention_backends"] == ["CPU_ATTN"]
    assert record["warm_up"]["prompts"] == 6
    assert record["warm_up"]["towers"] == ["image", "audio"]
    assert record["acceptance"]["drafts"] > 0
    assert len(record["acceptance"]["accepted_share_by_position"]) == 3


def _tokens(port: int, prompt: list[int]) -> list[int]:
    """Return the answer to `prompt`, asked for as the runner asks."""
    asked = {"model": MODEL, "prompt": prompt, "max_tokens": 24, "ignore_eos": True, "temperature": 0}
    told = post(port, "/v1/completions", {**asked, "return_token_ids": True, "add_special_tokens": False})
    tokens: list[int] = told["choices"][0]["token_ids"]
    assert len(tokens) == 24
    return tokens


def _chat(port: int, part: dict[str, Any]) -> Any:
    """Return what a message of a text and `part` is answered with: the text, and each token's log-probability."""
    messages = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, part]}]
    asked = {"model": MODEL, "messages": messages, "max_tokens": 8, "ignore_eos": True, "temperature": 0}
    choice = post(port, "/v1/chat/completions", {**asked, "logprobs": True})["choices"][0]
    assert len(choice["logprobs"]["content"]) == 8
    return choice["message"]["content"], [each["logprob"] for each in choice["logprobs"]["content"]]


def _picture(byte: bytes) -> dict[str, Any]:
    """Return a picture of one colour, as BMP."""
    pixels = byte * (3 * SIDE * SIDE)
    info = struct.pack("<IiiHHIIiiII", 40, SIDE, SIDE, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    file = struct.pack("<2sIHHI", b"BM", 54 + len(pixels), 0, 0, 54) + info + pixels
    return {"type": "image_url", "image_url": {"url": "data:image/bmp;base64," + base64.b64encode(file).decode()}}


def _sound(byte: bytes) -> dict[str, Any]:
    """Return a second of clicks at 100 Hz whose height is `byte`, as WAV."""
    heard = media.sound(SAMPLES)[:WAV_HEADER] + (b"\0" + byte + bytes(318)) * (SAMPLES // 160)
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(heard).decode(), "format": "wav"}}
