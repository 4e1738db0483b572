"""Hold the steps that a checkpoint was baked by, as its provenance tells them, against those that a profile bakes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from paddock_stack.bake.checkpoint import PROVENANCE, read_json
from paddock_stack.bake.steps.step import Step
from paddock_stack.profiles.schema import Profile
from paddock_stack.refusals import Refused

Said = Mapping[str, Any]  # a step as a provenance file tells it
_FILES = ("keep", "of")  # told by name and by digest; the digest counts


class WrongBake(Refused):
    """A checkpoint was baked by other steps than the profile's, or by steps that can't be read."""


def steps_of(folder: Path) -> tuple[Said, ...]:
    """Return all steps that made the checkpoint in `folder`, the earliest bake's first; none for one as published."""
    told = read_json(folder / PROVENANCE) if (folder / PROVENANCE).is_file() else None
    found: list[Said] = []
    while told is not None:
        steps, parent = told.get("steps"), told.get("parent")
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            raise WrongBake(f"{folder / PROVENANCE} doesn't say by which steps it was baked; bake it anew")
        found[:0] = steps
        told = parent.get("provenance") if isinstance(parent, dict) else None
        if not isinstance(parent, dict) or not isinstance(told, dict | None):
            raise WrongBake(f"{folder / PROVENANCE} doesn't say what it was baked from; bake it anew")
    return tuple(found)


def missing(profile: Profile, done: Sequence[Said], wanted: Sequence[Step]) -> Sequence[Step]:
    """Return those of `wanted`, the profile's steps, that still have to be baked after `done`.

    Raises:
        WrongBake: what is done is not how `wanted` begins: the result would be another checkpoint than the profile's.
    """
    baked = [step for step in done if not _is_set_anyway(profile, step)]
    for number, step in enumerate(baked):
        own = _said(_known(wanted[number])) if number < len(wanted) else "nothing"
        if number >= len(wanted) or own != _said(_alike(step, wanted[number])):
            raise WrongBake(
                f"step {number + 1} of the weights' bake is {_said(step)}, where {profile.name} bakes {own}: name the "
                "weights that they were baked from, or say in a profile's `bake` (a window in `window`) how they were"
            )
    return wanted[len(baked) :]


def lacking(step: Step) -> list[Path]:
    """Return those of the step's files that are not there."""
    named = (getattr(step, name) for name in step.files())
    return [path for path in named if path is not None and not path.is_file()]


def _known(step: Step) -> Said:
    """Return what is known of `step`: all, or all but its files where one is lacking.

    Weights that are baked ahead travel without the files, and their own provenance tells the digests.
    """
    if not lacking(step):
        return step.record()
    return {"step": step.NAME, **{key: value for key, value in asdict(step).items() if key not in step.files()}}


def _alike(done: Said, step: Step) -> Said:
    """Return as much of `done` as is known of `step`."""
    return {key: value for key, value in done.items() if key in _known(step)} if lacking(step) else done


def _is_set_anyway(profile: Profile, step: Said) -> bool:
    """Return whether `step` changes nothing of the model that the profile doesn't set as well."""
    if step.get("step") == "set-window":
        return step.get("window") == profile.window
    return step.get("step") == "set-centroid-top-k"  # the drafter's alone; one bake of both tells it in both folders


def _said(step: Said) -> str:
    return json.dumps({name: value for name, value in step.items() if name not in _FILES}, sort_keys=True)
