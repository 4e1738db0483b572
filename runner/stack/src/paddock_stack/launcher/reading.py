"""Read what is to be served: a profile named on the command line, or the one that a submission's manifest names.

    {"name": "mine", "profile": "int4-fast", "overrides": {"speculation.tokens": 7}, "model_id": "model",
     "weights_sha256": "…", "drafter_sha256": "…", "served_model_name": "gemma-4-e4b-it", "port": 8000}

`profile` may also be the name of a TOML file beside the manifest. MODEL_ID, SERVED_MODEL_NAME, HOST and PORT are the
runner's and win over the manifest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddock_stack.launcher.checks import StartRefused
from paddock_stack.launcher.serving import Address
from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine, Profile
from paddock_stack.submissions import limits

MANIFEST = "manifest.json"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest in `folder`.

    Raises:
        StartRefused: it can't be read or names no profile.
        OutOfBounds: its profile or one of its overrides is none that a runner takes.
    """
    try:
        told = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError) as fault:
        raise StartRefused(f"{folder / MANIFEST} can't be read: {fault}") from fault
    if not isinstance(told, dict) or not isinstance(told.get("profile"), str):
        raise StartRefused(f"{folder / MANIFEST} names no profile")
    if not isinstance(told.get("overrides", {}), dict):
        raise StartRefused(f"{folder / MANIFEST} has overrides that are no object")
    limits.check(told["profile"], told.get("overrides", {}))
    return told


def submitted(folder: Path, machine: Machine, environ: Mapping[str, str]) -> Profile:
    """Return the profile that the submission in `folder` serves: its manifest's, with its overrides and pins."""
    told = read_manifest(folder)
    overrides = dict(told.get("overrides", {}))
    for key, value in (
        ("weights.uri", environ.get("MODEL_ID") or told.get("model_id")),
        ("weights.sha256", told.get("weights_sha256")),
        ("speculation.drafter.sha256", told.get("drafter_sha256")),
    ):
        if value:
            overrides.setdefault(key, value)
    name = told["profile"]
    return load(str(folder / name) if name.endswith(".toml") else name, machine, overrides)


def address(environ: Mapping[str, str], *, name: str = "gemma-4-e4b-it", port: int = 8000) -> Address:
    """Return where to serve: what the runner says, else `name` and `port`."""
    said = environ.get("PORT", str(port))
    if not said.isdigit():
        raise StartRefused(f"PORT must be a number, not {said!r}")
    return Address(environ.get("HOST", "127.0.0.1"), int(said), environ.get("SERVED_MODEL_NAME", name))
