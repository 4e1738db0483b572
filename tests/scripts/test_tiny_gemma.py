"""The tiny Gemma 4 and the records made with it: the same bytes each time, and of the real architecture."""

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from runner.harness.prompts import read_references
from runner.harness.rendering import ChallengeTokenizer

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(os.environ.get("PADDOCK_SERVER_ENV", ROOT / ".server-env")) / "bin" / "python"

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON.exists(), reason=f"THE SERVER ENVIRONMENT IS ABSENT: {PYTHON} (make server-env)"),
]


def run(script: str, *arguments: object) -> None:
    command = [str(PYTHON), str(ROOT / "scripts" / script), *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    run("make_tiny_gemma.py", folder)
    return folder


def test_every_run_writes_the_same_bytes_readable_by_all(tiny: Path, tmp_path: Path) -> None:
    run("make_tiny_gemma.py", tmp_path)
    names = sorted(path.name for path in tiny.iterdir())
    assert names == sorted(path.name for path in tmp_path.iterdir())
    assert all((tiny / name).read_bytes() == (tmp_path / name).read_bytes() for name in names)
    assert all((tiny / name).stat().st_mode & 0o444 == 0o444 for name in names)


def test_architecture_is_that_of_the_large_one(tiny: Path) -> None:
    config = json.loads((tiny / "config.json").read_text())
    assert set(config["layer_types"]) == {"sliding_attention", "full_attention"}
    assert config["num_kv_shared_layers"] > 0
    assert config["hidden_size_per_layer_input"] > 0
    assert config["final_logit_softcapping"] == 30.0
    assert config["tie_word_embeddings"] is True
    assert {layer["head_dim"] for layer in config["per_layer_config"].values()} != {config["head_dim"]}


def test_references_carry_what_the_model_says_of_them(tiny: Path, tmp_path: Path) -> None:
    out = tmp_path / "references.jsonl"
    arguments = ("--model", tiny, "--prompts", ROOT / "prompts" / "public.jsonl", "--out", out)
    run("make_references.py", *arguments, "--target-tokens", 8, "--count", 4, "--max-prompt-tokens", 200)
    records = read_references(out)
    summary = json.loads((tmp_path / "references.jsonl.summary.json").read_text())
    nll = [value for record in records for value in record.target_nll or ()]
    assert (len(records), len(nll)) == (4, 32)
    assert summary["ppl"] == pytest.approx(math.exp(sum(nll) / 32))
    assert summary["ppl"] > 2
    vocabulary = ChallengeTokenizer(tiny).vocabulary_size
    assert all(0 <= token < vocabulary for record in records for token in record.target_token_ids)
