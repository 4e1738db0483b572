"""What the serving tests have in common: their prompts, and the tasks by short names."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from paddock_stack import cli
from tests.runner.stack.serving.zygote import Zygote

VOCABULARY = 2048
TOKENS = 24
_DRAW = random.Random(7)
SHORT = [2, 5, 300, 301, 302, 6]
LONG = [2, *(_DRAW.randrange(16, VOCABULARY) for _ in range(100))]  # longer than the sliding window of 64
PROMPTS = [SHORT, LONG]
_ANSWERS: dict[tuple[Zygote, str, str], dict[str, Any]] = {}


def served(zygote: Zygote, folder: Path, **arguments: Any) -> dict[str, Any]:
    """Return what vLLM with the plugin answers from the checkpoint in `folder`; see `generation.generate`."""
    return _answer(zygote, "generation", folder, arguments)


def reference(zygote: Zygote, folder: Path, **arguments: Any) -> dict[str, Any]:
    """Return what transformers answers from the checkpoint in `folder`; see `references.generate`."""
    return _answer(zygote, "references", folder, arguments)


def with_config(folder: Path, out: Path, **changes: Any) -> Path:
    """Copy the checkpoint in `folder` to `out` with `changes` in its configuration; return `out`."""
    shutil.copytree(folder, out)
    config = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(config | changes))
    return out


def _answer(zygote: Zygote, module: str, folder: Path, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask once for the same thing: every answer is greedy text of files that stay as they are."""
    asked = {"folder": str(folder), "prompts": PROMPTS, "max_tokens": TOKENS} | arguments
    key = (zygote, module, json.dumps(asked, sort_keys=True))
    if key not in _ANSWERS:
        _ANSWERS[key] = zygote.call(f"tests.runner.stack.serving.{module}:generate", **asked)
    return _ANSWERS[key]


def bake(*words: object) -> None:
    """Run `paddock-stack bake` with `words`, and fail unless it succeeds."""
    assert cli.main(["bake", *map(str, words)]) == 0
