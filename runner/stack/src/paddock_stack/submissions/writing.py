"""Write a submission's folder: manifest.json, and a serve.py of a few lines where one is wanted.

A manifest that names a profile and has no `serve` is a submission of configuration only: the runner serves it through
this stack. Checkpoints are copied into the folder, because a run has no network, and pinned by their hash; so are the
files of a profile of one's own. What no start could serve is refused before anything is written.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock_stack.bake.checkpoint import CONFIG
from paddock_stack.keepset import read_ids
from paddock_stack.launcher import checks
from paddock_stack.launcher.reading import MANIFEST
from paddock_stack.launcher.weights import find
from paddock_stack.profiles.catalogue import files_of, load
from paddock_stack.profiles.schema import Machine, Profile, Weights
from paddock_stack.refusals import Refused
from paddock_stack.submissions import limits
from paddock_stack.submissions.carried import carried

MODEL, DRAFTER, KEEPSET = "model", "drafter", "keepset.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
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
    """What the folder shall hold beside the profile; `name` is the profile's where none is given."""

    name: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    model: Path | None = None
    drafter: Path | None = None
    keepset: Path | None = None
    served_model_name: str = "gemma-4-e4b-it"
    port: int = 8000
    has_serve_py: bool = True


def write(name: str, wanted: Wanted, out: Path) -> dict[str, Any]:
    """Make the folder `out` for the profile `name` and return its manifest.

    Raises:
        Refused: `out` holds something, a file lacks, or the manifest is none that a runner and this stack serve;
            nothing was written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise Refused(f"{out} exists and is not an empty folder")
    _check_given(wanted)
    overrides = _overrides(name, wanted)
    profile = load(name, Machine.A10G, overrides)
    checks.check_profile(profile)
    _check_weights(profile, wanted, Path(name).parent)
    files = _files(name, wanted, overrides)
    overrides.pop("weights.uri", None)  # model_id says it, and so does the runner
    manifest = _manifest(profile, wanted, {"profile": Path(name).name, "overrides": overrides})
    limits.check_manifest(manifest)
    out.mkdir(parents=True, exist_ok=True)
    for place, file in files.items():
        shutil.copyfile(file, out / place)
    _copy_checkpoints(manifest, wanted, out)
    (out / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    if wanted.has_serve_py:
        (out / "serve.py").write_text(SERVE_PY)
    return manifest


def _check_given(wanted: Wanted) -> None:
    for option, folder in (("--weights", wanted.model), ("--drafter", wanted.drafter)):
        if folder is not None and not (folder / CONFIG).is_file():
            raise Refused(f"{option} {folder} is no folder with a {CONFIG}")
    if wanted.keepset is not None:
        read_ids(wanted.keepset)


def _overrides(name: str, wanted: Wanted) -> dict[str, Any]:
    overrides = dict(wanted.overrides)
    if wanted.drafter is not None:
        overrides["speculation.drafter.uri"] = DRAFTER
    if wanted.keepset is not None and load(name, Machine.A10G, overrides).keepset != KEEPSET:
        overrides["keepset"] = KEEPSET
    if overrides.get("keepset", KEEPSET) != KEEPSET and not files_of(name):
        raise Refused("name a keep-set's file with --keepset, so that it travels with the submission")
    return overrides


def _files(name: str, wanted: Wanted, overrides: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files to copy, checkpoints apart, by their names in the folder."""
    given = {KEEPSET: wanted.keepset} if wanted.keepset is not None else {}
    return {path.name: path for path in carried(name, overrides, without=given)} | given


def _check_weights(profile: Profile, wanted: Wanted, beside: Path) -> None:
    """Raise `Refused` for a checkpoint that lies on this machine, or that no manifest can name, and is not copied."""
    model, drafter = profile.weights.uri, profile.speculation.drafter.uri
    if wanted.model is None and (not _HUB_ID.fullmatch(model) or _is_folder(model, beside)):
        raise Refused(
            f"a manifest can't name the weights {model!r}, as it is no Hub id; fetch them, then --weights FOLDER"
        )
    if wanted.drafter is None and profile.speculation.tokens and _is_folder(drafter, beside):
        raise Refused(f"the drafter {drafter} lies on this machine alone; copy it with --drafter {drafter}")


def _is_folder(uri: str, beside: Path) -> bool:
    return uri.startswith(("/", ".", "~")) or Path(uri).is_dir() or (beside / uri).is_dir()


def _copy_checkpoints(manifest: dict[str, Any], wanted: Wanted, out: Path) -> None:
    for key, source, name in (("weights_sha256", wanted.model, MODEL), ("drafter_sha256", wanted.drafter, DRAFTER)):
        if source is not None:
            shutil.copytree(source, out / name)
            manifest[key] = find(Weights(name), out, out).sha256


def _manifest(profile: Profile, wanted: Wanted, named: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": wanted.name or profile.name,
        "description": " ".join(f"{profile.summary} {profile.warning}".split()),
        **{key: value for key, value in named.items() if value},
        "dependencies": [],
        "model_id": MODEL if wanted.model is not None else profile.weights.uri,
        "served_model_name": wanted.served_model_name,
        "port": wanted.port,
        **({"serve": ["python", "serve.py"]} if wanted.has_serve_py else {}),
        "env": {},
    }
