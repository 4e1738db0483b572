"""Know all steps by name, and read chains of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddock_stack.bake.steps.drop_layers import DropLayers
from paddock_stack.bake.steps.floats import DequantPleGate
from paddock_stack.bake.steps.heads import PruneHead, UntieHead
from paddock_stack.bake.steps.quantize import Quantize, Regroup
from paddock_stack.bake.steps.settings import SetCentroidTopK, SetWindow
from paddock_stack.bake.steps.step import Step
from paddock_stack.refusals import Refused

KINDS: tuple[type[Step], ...] = (
    *(DropLayers, UntieHead, PruneHead, Quantize, Regroup, DequantPleGate, SetWindow, SetCentroidTopK),
)
STEPS: Mapping[str, type[Step]] = {kind.NAME: kind for kind in KINDS}


def read_step(given: Mapping[str, Any]) -> Step:
    """Return the step that `{"step": name, option: value, …}` describes; raise `Refused` where there is none."""
    options = dict(given)
    name = options.pop("step", None)
    if name not in STEPS:
        raise Refused(f"there is no step {name!r}; there are {', '.join(STEPS)}")
    return STEPS[name].read(options)


def read_steps(path: Path) -> list[Step]:
    """Return the steps in the JSON list at `path`; file names in it are relative to its folder."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError) as fault:
        raise Refused(f"the steps file {path} can't be read: {fault}") from fault
    if not isinstance(held, list) or not held or not all(isinstance(one, dict) for one in held):
        raise Refused(f"the steps file {path} is not a list of steps")
    return [read_step(in_folder(one, path.parent)) for one in held]


def in_folder(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the step that `given` describes with its file names taken from `folder`."""
    files = STEPS[given["step"]].files() if given.get("step") in STEPS else []
    return {name: str(folder / value) if name in files else value for name, value in given.items()}
