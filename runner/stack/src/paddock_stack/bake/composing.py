"""Make keep-sets from keep-sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from paddock_stack import keepset
from paddock_stack.bake.building import write_durably
from paddock_stack.bake.checkpoint import CONFIG, read_json
from paddock_stack.bake.needed_tokens import needed_tokens
from paddock_stack.bake.text_config import number, text_part
from paddock_stack.keepset import KeepSet
from paddock_stack.refusals import Refused


class How(StrEnum):
    """Say what becomes of several keep-sets: all of them, what they share, or each as row numbers of the one before."""

    UNION = "union"
    INTERSECTION = "intersection"
    ROWS = "rows"


def compose(sets: Sequence[Sequence[int]], how: How, full_vocab: int) -> KeepSet:
    """Return one keep-set made of `sets`; raise `Refused` for ids that are no ids or lie outside."""
    for number_of_set, ids in enumerate(sets):
        keepset.check_ids(ids, full_vocab if how != How.ROWS or number_of_set == 0 else len(sets[number_of_set - 1]))
    made = list(sets[0])
    for ids in sets[1:]:
        if how == How.ROWS:
            made = [made[row] for row in ids]
        else:
            made = sorted(set(made) | set(ids) if how == How.UNION else set(made) & set(ids))
    return KeepSet(tuple(sorted(made)), full_vocab)


def write_composed(files: Sequence[Path], how: How, model: Path, out: Path, *, add_needed: bool) -> KeepSet:
    """Write the composition of `files` for the model in `model` to the new file `out`, and return it."""
    if out.exists():
        raise Refused(f"{out} exists; name another file")
    config = read_json(model / CONFIG)
    made = compose([keepset.read_ids(file) for file in files], how, number(text_part(config), "vocab_size"))
    if add_needed:
        needed = set().union(*needed_tokens(model, config).values())
        inside = {token for token in needed if token < made.full_vocab}
        made = KeepSet(tuple(sorted({*made.ids, *inside})), made.full_vocab)
    said = {"full_vocab": made.full_vocab, "sha256": made.sha256, "keep_ids": list(made.ids)}
    part = out.with_name(out.name + ".part")
    write_durably(part, (json.dumps(said) + "\n").encode())
    part.rename(out)
    return made
