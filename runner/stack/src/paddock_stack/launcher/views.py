"""Serve a checkpoint with a few numbers of its configuration changed, without copying its weights.

A view is a folder of links to the checkpoint's files with a config.json of its own. vLLM's `--hf-overrides` would do
for the model, but never reaches the drafter.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from paddock_stack.bake.checkpoint import CONFIG, read_json
from paddock_stack.bake.text_config import text_part

Change = Callable[[dict[str, Any]], None]


def view(folder: Path, out: Path, change: Change) -> Path:
    """Return `out` as a view of `folder` whose configuration went through `change`; one that is there already is kept.

    It appears whole: another start may be serving from it.
    """
    if out.is_dir():
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    for path in folder.iterdir():
        if path.name != CONFIG:
            (part / path.name).symlink_to(path.resolve())
    config = read_json(folder / CONFIG)
    change(config)
    (part / CONFIG).write_text(json.dumps(config, indent=1) + "\n")
    with suppress(OSError):  # another start was first, and made the same
        part.rename(out)
    return out


def set_window(window: int) -> Change:
    """Return the change that gives the sliding layers a window of so many tokens."""

    def change(config: dict[str, Any]) -> None:
        text_part(config)["sliding_window"] = window

    return change


def set_centroid_top_k(top_k: int) -> Change:
    """Return the change that lets a drafter look into so many centroids."""

    def change(config: dict[str, Any]) -> None:
        config["centroid_intermediate_top_k"] = top_k

    return change
