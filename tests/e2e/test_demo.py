"""`make demo DEMO_EXIT=1`: the main job on real vLLM and a tiny random Gemma 4."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.alone
@pytest.mark.vllm
def test_the_demo_ends_with_a_verified_row(tmp_path: Path) -> None:
    env = {**os.environ, "DEMO_EXIT": "1", "DEMO_WORK": str(tmp_path / "demo"), "DEMO_PORT": "0"}
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "demo.py"],
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    row = done.stdout.strip().splitlines()[-1].split()
    assert (row[0], row[1], row[-1]) == ("1", "blue-heron", "valid")
