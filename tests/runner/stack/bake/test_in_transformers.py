"""What transformers computes with baked checkpoints, all of it in one process of the server environment."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[4]
PYTHON = Path(os.environ.get("PADDOCK_SERVER_ENV", ROOT / ".server-env")) / "bin" / "python"

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON.exists(), reason=f"THE SERVER ENVIRONMENT IS ABSENT: {PYTHON} (make server-env)"),
]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    command = [str(PYTHON), str(Path(__file__).with_name("in_transformers.py")), str(tmp_path_factory.mktemp("models"))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "runner/stack/src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    made: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return made


@pytest.mark.parametrize(
    "comparison",
    [
        pytest.param("skip", id="dropped_layers_equal_layers_skipped_at_run_time"),
        pytest.param("sharded", id="and_so_they_do_in_several_files"),
        pytest.param("older", id="and_with_the_older_form_of_head_sizes"),
        pytest.param("multimodal", id="and_inside_a_multimodal_model"),
        pytest.param("untied", id="an_untied_head_scores_as_the_embedding_did"),
        pytest.param("window", id="a_baked_window_equals_a_configured_one"),
        pytest.param("packed", id="packed_weights_read_as_compressed_tensors_unpacks_them"),
    ],
)
def test_same_logits(found: dict[str, Any], comparison: str) -> None:
    assert found[comparison]["same_tokens"]
    assert found[comparison]["difference"] < 1e-4
    assert found[comparison]["spread"] > 0.1  # logits that are all alike would prove nothing


@pytest.mark.parametrize("change", ["skip_matters", "window_matters", "packed_matters"])
def test_each_change_can_be_seen(found: dict[str, Any], change: str) -> None:
    assert found[change]["difference"] > 0.1
    assert not found[change]["same_tokens"]
