"""Bring model and drafter into the form that a profile serves: found, pinned, baked, given one window."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_stack import keepset, sources
from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.checkpoint import CONFIG, open_checkpoint, read_json
from paddock_stack.bake.steps.catalogue import in_folder, read_step
from paddock_stack.bake.steps.step import Step
from paddock_stack.launcher import checks, views
from paddock_stack.launcher.history import Said, lacking, missing, steps_of
from paddock_stack.launcher.weights import Found, find
from paddock_stack.profiles.schema import Profile


@dataclass(frozen=True)
class Prepared:
    """The folders to serve, the checkpoints that they came from, the model's towers, and all steps that baked it."""

    model: Path
    drafter: Path | None
    model_found: Found
    drafter_found: Found | None
    towers: tuple[str, ...]
    steps: tuple[Said, ...]

    @property
    def remarks(self) -> list[str]:
        """Return what whoever starts this should know, a sentence each."""
        found = (("weights", self.model_found), ("speculation.drafter", self.drafter_found))
        loose = [(key, each) for key, each in found if each is not None and not each.pinned_by]
        said = [f"{each.uri} is pinned by nothing; {key}.sha256={each.sha256} pins it" for key, each in loose]
        return said if self.towers else [*said, "the checkpoint is of text alone: no image and no audio is answered"]


def prepare(profile: Profile, base: Path, cache: Path) -> Prepared:
    """Return what is to be served. Bakes lie in `cache`, so that a second start of the same stack finds them.

    Raises:
        Refused: the profile, a checkpoint or a step is refused. The cache may hold finished bakes; nothing else stays.
    """
    checks.check_profile(profile)
    wanted = [_read(step, base) for step in profile.steps]
    target = find(profile.weights, base, cache)
    drafter = find(profile.speculation.drafter, base, cache) if profile.speculation.tokens else None
    model = _baked(target, missing(profile, target.baked_by, wanted), cache)
    steps = steps_of(model)
    draft_folder = drafter.folder if drafter else None
    if profile.window:
        change = views.set_window(profile.window)
        model = _view(model, target, f"window {profile.window}", cache, change)
        draft_folder = _view(drafter.folder, drafter, f"window {profile.window}", cache, change) if drafter else None
    if profile.centroid_top_k and draft_folder and drafter:
        change = views.set_centroid_top_k(profile.centroid_top_k)
        draft_folder = _view(draft_folder, drafter, f"centroids {profile.centroid_top_k}", cache, change)
    config = _looked_into(model)
    checks.check_checkpoints(config, read_json(draft_folder / CONFIG) if draft_folder else None)
    return Prepared(model, draft_folder, target, drafter, checks.has_towers(config), steps)


def _looked_into(model: Path) -> Mapping[str, Any]:
    """Return the configuration of the checkpoint to be served; raise `Refused` where its weights lack a part of it.

    vLLM 0.23 serves a quantised checkpoint of which a norm is missing, with whatever lay in the memory.
    """
    held = open_checkpoint(model)
    try:
        checks.check_towers(held.config, held.modules)
    finally:
        held.close()
    return held.config


def _view(folder: Path, found: Found, what: str, cache: Path, change: views.Change) -> Path:
    name = hashlib.sha256(f"{folder}\n{found.sha256}\n{what}".encode()).hexdigest()[:16]
    return views.view(folder, cache / "views" / name, change)


def _read(given: Mapping[str, Any], base: Path) -> Step:
    """Return the step `given` with its files found in `base`; those that are there are looked into."""
    step = read_step(in_folder(given, base))
    for path in (getattr(step, name) for name in step.files()):
        if path is not None and path.is_file():
            keepset.check_ids(keepset.read_ids(path), sys.maxsize, str(path))
    return step


def _baked(target: Found, steps: Sequence[Step], cache: Path) -> Path:
    if not steps:
        return target.folder
    if gone := [path for step in steps for path in lacking(step)]:
        raise checks.StartRefused(f"there is no keep-set {gone[0]}; put the file there, or name another in `keepset`")
    named = json.dumps([sources.sha256(), target.sha256, *(step.record() for step in steps)], sort_keys=True)
    out = cache / "baked" / hashlib.sha256(named.encode()).hexdigest()[:16]
    if not (out / CONFIG).is_file():
        bake(steps, Route(target.folder, out))
    return out
