"""Bring model and drafter into the form that a profile serves: found, pinned, baked, given one window."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.checkpoint import CONFIG, read_json
from paddock_stack.bake.steps.catalogue import read_step
from paddock_stack.launcher import checks, views
from paddock_stack.launcher.weights import Found, find
from paddock_stack.profiles.schema import Profile


@dataclass(frozen=True)
class Prepared:
    """The folders to serve, the checkpoints that they came from, and the model's towers."""

    model: Path
    drafter: Path | None
    model_found: Found
    drafter_found: Found | None
    towers: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]


def prepare(profile: Profile, base: Path, cache: Path) -> Prepared:
    """Return what is to be served. Bakes lie in `cache`, so that a second start finds them.

    Raises:
        Refused: the profile, a checkpoint or a step is refused. The cache may hold finished bakes; nothing else stays.
    """
    checks.check_profile(profile)
    target = find(profile.weights, base, cache)
    drafter = find(profile.speculation.drafter, base, cache) if profile.speculation.tokens else None
    # What was baked ahead, by these very steps, is served as it is.
    steps = () if _is_baked(target.folder) else tuple(_in_folder(step, base) for step in profile.steps)
    model = _baked(target, steps, cache) if steps else target.folder
    draft_folder = drafter.folder if drafter else None
    if profile.window:
        change = views.set_window(profile.window)
        model = _view(model, target, f"window {profile.window}", cache, change)
        draft_folder = _view(drafter.folder, drafter, f"window {profile.window}", cache, change) if drafter else None
    if profile.centroid_top_k and draft_folder and drafter:
        change = views.set_centroid_top_k(profile.centroid_top_k)
        draft_folder = _view(draft_folder, drafter, f"centroids {profile.centroid_top_k}", cache, change)
    config = read_json(model / CONFIG)
    checks.check_checkpoints(config, read_json(draft_folder / CONFIG) if draft_folder else None)
    return Prepared(model, draft_folder, target, drafter, checks.has_towers(config), steps)


def _view(folder: Path, found: Found, what: str, cache: Path, change: views.Change) -> Path:
    name = hashlib.sha256(f"{folder}\n{found.sha256}\n{what}".encode()).hexdigest()[:16]
    return views.view(folder, cache / "views" / name, change)


def _is_baked(folder: Path) -> bool:
    return (folder / "paddock-bake.json").is_file()


def _in_folder(step: Mapping[str, Any], base: Path) -> Mapping[str, Any]:
    return {**step, "keep": str(base / step["keep"])} if "keep" in step else step


def _baked(target: Found, steps: tuple[Mapping[str, Any], ...], cache: Path) -> Path:
    named = json.dumps([target.sha256, *(_said(step) for step in steps)], sort_keys=True)
    out = cache / "baked" / hashlib.sha256(named.encode()).hexdigest()[:16]
    if not (out / CONFIG).is_file():
        bake([read_step(step) for step in steps], Route(target.folder, out))
    return out


def _said(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a step with a file's content in place of its name."""
    return {**step, "keep": Path(step["keep"]).read_text()} if "keep" in step else step
