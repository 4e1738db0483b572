"""Say which files must travel with a profile of one's own: itself, what it extends, and the tokens that its bake names.

A submission is flat, and names stay as the profile says them, so all of them must lie beside the profile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from paddock_stack.bake.steps.catalogue import STEPS
from paddock_stack.profiles.catalogue import files_of, load
from paddock_stack.profiles.schema import Machine
from paddock_stack.refusals import Refused


def carried(profile: str, overrides: Mapping[str, Any], *, without: Collection[str] = ()) -> list[Path]:
    """Return the files of a profile of one's own, whatever the machine, but for those named in `without`.

    Of a bundled profile there are none: what its bake reads is given by whoever makes the submission.

    Raises:
        Refused: one of them is not there, or not beside the profile.
    """
    files = files_of(profile)
    if not files:
        return []
    home = files[0].parent
    if lost := next((path for path in files if path.parent.resolve() != home.resolve()), None):
        raise Refused(f"{files[0].name} extends {lost}, but a submission carries only what lies beside it")
    names = dict.fromkeys(_named(profile, overrides))
    for name in names:
        if name not in without and (Path(name).name != name or not (home / name).is_file()):
            raise Refused(
                f"{files[0].name} bakes with {name}, which is no file beside it; put it there or see --keepset"
            )
    return [*files, *(home / name for name in names if name not in without)]


def _named(profile: str, overrides: Mapping[str, Any]) -> Iterator[str]:
    for machine in Machine:
        for step in load(profile, machine, overrides).steps:
            options = STEPS[step["step"]].files() if step["step"] in STEPS else ()
            yield from (str(step[option]) for option in options if step.get(option))
