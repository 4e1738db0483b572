"""The record says which grid of unified attention a start launches, by vLLM's own rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddock_stack.launcher import record
from paddock_stack.launcher.logs import Resolved
from paddock_stack.launcher.preparing import Prepared
from paddock_stack.launcher.warm_up import Warmed
from paddock_stack.launcher.weights import Found
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine

WARMED = Warmed(1, 0, 16, 50, 50, "", 1, (), 0.1)


@pytest.mark.parametrize(
    ("settings", "vllm", "sizes", "kernels"),
    [
        ({}, "0.33.0", [1, 2, 4, 8], ["fixed split", "fixed split"]),
        ({"levers.attention": "2d"}, "0.33.0", [1, 2, 4, 8], ["2D", "2D"]),
        ({"levers.attention": "native"}, "0.33.0", [1, 2, 4, 8], ["3D", "3D"]),
        ({"levers.attention": "native"}, "0.23.0", [1, 2, 4, 8], ["3D", "2D"]),
        ({"levers.attention": "native"}, "0.33.0", [1], ["3D", "2D"]),  # a sole size of one turns it off
        ({"levers.attention": "native", "speculation.tokens": 8}, "0.33.0", [1, 2, 16], ["3D", "2D"]),
        ({"levers.attention": "native"}, None, None, [None, None]),
    ],
)
def test_grid_of_decoding_and_verifying(
    tmp_path: Path, settings: dict[str, Any], vllm: str | None, sizes: list[int] | None, kernels: list[str | None]
) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gemma4_text"}')
    prepared = Prepared(tmp_path, None, Found("m", tmp_path, "", ""), None, (), ())
    resolved = Resolved(vllm=vllm, capture_sizes=sizes)
    told = record.made(load("int4-fast", Machine.A10G, settings), prepared, resolved, WARMED)["attention_kernel"]
    assert [told["decode"], told["verify"]] == kernels
