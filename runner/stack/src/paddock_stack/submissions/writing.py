"""Write a submission's folder: manifest.json, and a serve.py of a few lines where one is wanted.

A manifest that names a profile and has no `serve` is a submission of configuration only: the runner serves it through
this stack. Checkpoints are copied into the folder, because a run has no network, and pinned by their hash.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock_stack.launcher.reading import MANIFEST
from paddock_stack.launcher.weights import find
from paddock_stack.profiles.schema import Profile, Weights
from paddock_stack.refusals import Refused

MODEL, DRAFTER, KEEPSET = "model", "drafter", "keepset.json"
SERVE_PY = '''\
"""Serve the profile that manifest.json beside this file names, by paddock-stack."""

import sys
from pathlib import Path

from paddock_stack.launcher.commands import serve_submission

if __name__ == "__main__":
    sys.exit(serve_submission(Path(__file__).resolve().parent))
'''


@dataclass(frozen=True)
class Wanted:
    """What the folder shall hold beside the profile's name."""

    name: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    model: Path | None = None
    drafter: Path | None = None
    keepset: Path | None = None
    served_model_name: str = "gemma-4-e4b-it"
    port: int = 8000
    has_serve_py: bool = True


def write(profile: Profile, wanted: Wanted, out: Path) -> dict[str, Any]:
    """Make the folder `out` and return its manifest; raise `Refused` where `out` holds something."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"{out} exists and is not an empty folder")
    out.mkdir(parents=True, exist_ok=True)
    manifest = _manifest(profile, wanted)
    for key, source, name in (("weights_sha256", wanted.model, MODEL), ("drafter_sha256", wanted.drafter, DRAFTER)):
        if source is not None:
            shutil.copytree(source, out / name)
            manifest[key] = find(Weights(name), out, out).sha256
    if wanted.keepset is not None:
        shutil.copyfile(wanted.keepset, out / KEEPSET)
    (out / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    if wanted.has_serve_py:
        (out / "serve.py").write_text(SERVE_PY)
    return manifest


def _manifest(profile: Profile, wanted: Wanted) -> dict[str, Any]:
    overrides = dict(wanted.overrides)
    if wanted.drafter is not None:
        overrides["speculation.drafter.uri"] = DRAFTER
    return {
        "name": wanted.name,
        "description": f"{profile.summary} {profile.warning}".strip(),
        "profile": profile.name,
        **({"overrides": overrides} if overrides else {}),
        "dependencies": [],
        "model_id": MODEL if wanted.model is not None else profile.weights.uri,
        "served_model_name": wanted.served_model_name,
        "port": wanted.port,
        **({"serve": ["python", "serve.py"]} if wanted.has_serve_py else {}),
        "env": {},
    }
