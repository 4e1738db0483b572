"""Everything that the stack launches in Triton compiles for an A10G and an H200; that needs neither."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.runner.stack.conftest import SERVER_ENV
from tests.runner.stack.serving.zygote import ROOT

SHARED_OF_SM_86 = 99 << 10


@pytest.mark.vllm
def test_every_launch_compiles_and_fits_the_smaller_gpu(interpreter: dict[str, Any]) -> None:
    path = os.pathsep.join([str(ROOT / "runner/stack/src"), interpreter["path"]])
    script = Path(__file__).with_name("compiling.py")
    out = subprocess.run(
        [SERVER_ENV / "bin/python", script], env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=True
    )
    told = json.loads(out.stdout)
    kernels = {each.split()[1].removesuffix(",") for each in told}
    assert kernels == {
        *("attend_segments", "merge_segments", "best_columns", "best_of_block", "best_of_blocks"),
        *("head_product", "best_row"),
    }
    assert all(0 < shared <= SHARED_OF_SM_86 for shared in told.values()), told
