"""Own the form in which a pruned head says which tokens it still has a row for.

The text part of config.json carries two keys, written by `bake prune-head` and read by the serving plugin:

    "lm_head_keep_ids": [0, 1, 2, 5, …]        row r of lm_head scores token lm_head_keep_ids[r]; strictly ascending
    "lm_head_keepset": {"sha256": "…", "full_vocab": 262144, "builder": "paddock-stack 0.1.0", "source": "12k.json"}

`vocab_size` stays that of the whole vocabulary. A keep-set file is either a bare JSON list of ids or an object with
`keep_ids`; what else it holds is ignored.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_stack.refusals import Refused

IDS_KEY = "lm_head_keep_ids"
RECORD_KEY = "lm_head_keepset"


@dataclass(frozen=True)
class KeepSet:
    """Hold token ids, strictly ascending, each within [0, full_vocab)."""

    ids: tuple[int, ...]
    full_vocab: int

    def __post_init__(self) -> None:
        check_ids(self.ids, self.full_vocab)
        if any(not (before < after) for before, after in zip(self.ids, self.ids[1:], strict=False)):
            raise Refused("the keep-set's ids are not in ascending order")

    @property
    def sha256(self) -> str:
        """Return the hex SHA-256 of the ids as decimal numbers joined by commas."""
        return digest(self.ids)


def digest(ids: Sequence[int]) -> str:
    """Return the hex SHA-256 of `ids`, in their order, as decimal numbers joined by commas."""
    return hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()


def check_ids(ids: Sequence[object], full_vocab: int, where: str = "the keep-set") -> None:
    """Raise `Refused`, naming `where`, unless `ids` are different whole numbers in [0, full_vocab), at least one."""
    if not ids:
        raise Refused(f"{where} is empty")
    for token in ids:
        if not isinstance(token, int) or isinstance(token, bool) or not (0 <= token < full_vocab):
            raise Refused(f"{where} holds {token!r}, which is no token id below {full_vocab}")
    if len(set(ids)) != len(ids):
        repeated = next(token for token, count in Counter(ids).items() if count > 1)
        raise Refused(f"{where} holds token {repeated} more than once")


def read_ids(path: Path) -> list[Any]:
    """Return the ids in the file at `path` in the file's order, unchecked."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError) as fault:
        raise Refused(f"the keep-set {path} can't be read: {fault}") from fault
    ids = held.get("keep_ids") if isinstance(held, dict) else held
    if not isinstance(ids, list):
        raise Refused(f"the keep-set {path} is neither a list of ids nor an object with keep_ids")
    return ids


def from_config(text_config: Mapping[str, Any]) -> KeepSet | None:
    """Return the keep-set that `text_config` carries, or None; raise `Refused` when its digest doesn't match."""
    ids, record = text_config.get(IDS_KEY), text_config.get(RECORD_KEY)
    if ids is None and record is None:
        return None
    if not isinstance(ids, list) or not isinstance(record, dict):
        raise Refused(f"the configuration has only one of {IDS_KEY} and {RECORD_KEY}, or in an unknown form")
    keepset = KeepSet(tuple(ids), int(text_config["vocab_size"]))
    if record.get("sha256") != keepset.sha256 or record.get("full_vocab") != keepset.full_vocab:
        raise Refused("the keep-set in the configuration is not the one that its digest names")
    return keepset
