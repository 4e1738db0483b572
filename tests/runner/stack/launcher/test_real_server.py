"""A bundled submission's serve.py, with real vLLM behind it, over HTTP."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine
from paddock_stack.submissions.writing import Wanted, write
from tests.conftest import eventually
from tests.runner.stack.conftest import SERVER_ENV
from tests.runner.stack.launcher.starting import clean_environment, free_port, post, status_of

pytestmark = pytest.mark.vllm


def test_submission_is_ready_after_its_warm_up_and_answers_as_the_runner_asks(
    checkpoints: Path, tmp_path: Path
) -> None:
    folder, port = tmp_path / "mine", free_port()
    wanted = Wanted("mine", model=checkpoints / "text", drafter=checkpoints / "drafter")
    manifest = write(load("exact-mtp", Machine.A10G), wanted, folder)
    env = {"MODEL_ID": str(folder / "model"), "SERVED_MODEL_NAME": "tiny", "HOST": "127.0.0.1", "PORT": str(port)}
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
        asked = {"model": "tiny", "prompt": [2, 5, 300, 301], "max_tokens": 8, "ignore_eos": True, "temperature": 0}
        told = post(port, "/v1/completions", {**asked, "return_token_ids": True, "add_special_tokens": False})
        assert len(told["choices"][0]["token_ids"]) == 8
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
    assert record["acceptance"]["drafts"] > 0
    assert len(record["acceptance"]["accepted_share_by_position"]) == 3
