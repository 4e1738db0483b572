"""`paddock-stack bake` as a person calls it."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from paddock_stack.bake.progress import Progress, line_of
from tests.runner.stack.bake.checkpoints import KINDS, arrays, read_folder, text_config, write_checkpoint

SOURCES = Path(__file__).resolve().parents[4] / "runner/stack/src"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "in", text_config(), arrays(text_config()))


def call(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paddock_stack.cli", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(SOURCES)}
    )


def test_inspect_tells_sources_head_and_quantisation(source: Path) -> None:
    done = call("bake", "inspect", source)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["layers"] == 12
    assert told["sources"] == {"sliding_attention": 4, "full_attention": 5}
    assert told["head"] == "tied"
    assert told["quantised"]["mlp"] == "floats"
    assert sum(told["bytes"].values()) == told["weights_bytes"]


def test_steps_chain_on_one_line_and_from_a_file(source: Path, tmp_path: Path) -> None:
    keep = tmp_path / "keep.json"
    made = call("bake", "compose-keepset", keep, keepset(tmp_path), "--model", source, "--needed")
    assert made.stdout == f"{keep}: 266 of 320 tokens\n"
    line = ["--layers", "0,7,8", "--then", "untie-head", "--group-size", "64", "--then", "prune-head", "--keep", keep]
    done = call("bake", "drop-layers", source, tmp_path / "line", *line)
    assert done.returncode == 0, done.stderr
    steps = [
        {"step": "drop-layers", "layers": [0, 7, 8]},
        {"step": "untie-head", "group_size": 64},
        {"step": "prune-head", "keep": "keep.json"},
    ]
    (tmp_path / "steps.json").write_text(json.dumps(steps))
    done = call("bake", "run", source, tmp_path / "file", "--steps", tmp_path / "steps.json")
    assert done.returncode == 0, done.stderr
    for path in (tmp_path / "line").iterdir():
        assert path.read_bytes() == (tmp_path / "file" / path.name).read_bytes()
    assert read_folder(tmp_path / "line")["lm_head.weight_scale"][1].shape == (266, 1)
    assert call("bake", "verify", tmp_path / "line").stdout.endswith(" 1 packed: sound\n")


def keepset(folder: Path) -> Path:
    (folder / "frequent.json").write_text(json.dumps([300, 315, 2]))
    return folder / "frequent.json"


def test_a_refusal_is_one_sentence_and_status_one(source: Path, tmp_path: Path) -> None:
    done = call("bake", "drop-layers", source, tmp_path / "out", "--layers", "4")
    assert done.returncode == 1
    assert done.stderr.startswith("paddock-stack: layer 4 can't go")
    assert done.stderr.count("\n") == 1
    assert call("bake", "drop-layers", source, "--layers", "4").stderr == "paddock-stack: IN and OUT go together\n"


def test_model_and_drafter_are_baked_together(source: Path, tmp_path: Path) -> None:
    text = text_config(layer_types=KINDS[:3], num_kv_shared_layers=3)
    drafter = write_checkpoint(
        tmp_path / "drafter", {"model_type": "gemma4_assistant", "text_config": text}, arrays(text)
    )
    places = ["--drafter", drafter, "--drafter-out", tmp_path / "drafter-out"]
    done = call("bake", "set-window", source, tmp_path / "out", "--window", 48, *places)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "drafter-out/config.json").read_text())["text_config"]["sliding_window"] == 48


def test_verify_notices_what_was_changed_after_the_bake(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert call("bake", "quantize", source, out).returncode == 0
    weights, whole = out / "model.safetensors", (out / "model.safetensors").read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "is not the file that paddock-bake.json was written for" in call("bake", "verify", out).stderr
    weights.write_bytes(whole)
    (out / "stray.txt").write_text("")
    assert "stray.txt is not promised" in call("bake", "verify", out).stderr
    (out / "stray.txt").unlink()
    (out / "chat_template.jinja").unlink()
    assert "chat_template.jinja is missing" in call("bake", "verify", out).stderr
    assert "config.json can't be read" in call("bake", "verify", tmp_path).stderr


def test_progress_tells_bytes_speed_and_time_left() -> None:
    assert line_of(3 * 10**9, 9 * 10**9, 6.0, "a file") == "a file: 3.00 of 9.00 GB, 33 %, 500 MB/s, 12 s left"
    assert line_of(0, 0, 0.0, "a file") == "a file: 0.00 of 0.00 GB, 100 %, 0 MB/s, …"
    out = StringIO()
    progress = Progress(10, out)
    progress.add(10, "a file")
    progress.finish()
    assert out.getvalue() == ""  # too short a bake to speak of
