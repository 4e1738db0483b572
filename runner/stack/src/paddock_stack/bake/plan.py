"""Lay out the files of a bake, and give the whole plan a digest by which a restart knows its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paddock_stack import VERSION
from paddock_stack.bake.checkpoint import WEIGHTS, Checkpoint
from paddock_stack.bake.dtypes import raw_dtype
from paddock_stack.bake.tensors import Tensor
from paddock_stack.bake.weights_file import header_bytes

TOOL = f"paddock-stack {VERSION}"
SHARD_BYTES = 4 * 10**9


@dataclass(frozen=True)
class Shard:
    """One weights file to be written: its name, its header and the tensors after it."""

    name: str
    header: bytes
    tensors: dict[str, Tensor]

    @property
    def nbytes(self) -> int:
        """Return the size of the whole file."""
        return len(self.header) + sum(tensor.nbytes for tensor in self.tensors.values())


@dataclass(frozen=True)
class Plan:
    """All that a bake of one checkpoint writes; `before` is what it is made from."""

    before: Checkpoint
    after: Checkpoint
    steps: tuple[dict[str, Any], ...]
    shards: tuple[Shard, ...]
    digest: str


def make_plan(
    before: Checkpoint, after: Checkpoint, steps: Sequence[dict[str, Any]], shard_bytes: int = SHARD_BYTES
) -> Plan:
    """Return the plan that turns `before` into `after`, in files of at most `shard_bytes` but for larger tensors."""
    shards = _shards(after.tensors, shard_bytes)
    inputs = [(file.path.name, file.identity.size_bytes, file.identity.modified_ns) for file in before.weights]
    others = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in before.others]
    said = {
        **{"tool": TOOL, "steps": list(steps), "inputs": inputs, "others": others, "config": after.config},
        "shards": [[shard.name, hashlib.sha256(shard.header).hexdigest()] for shard in shards],
    }
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    return Plan(before, after, tuple(steps), shards, digest)


def _shards(tensors: dict[str, Tensor], shard_bytes: int) -> tuple[Shard, ...]:
    # Wide elements first keeps every tensor aligned; otherwise the order of the input, so that it is read in one go.
    ordered = sorted(tensors.items(), key=lambda item: -raw_dtype(item[1].dtype).itemsize)
    parts: list[dict[str, Tensor]] = [{}]
    for name, tensor in ordered:
        if parts[-1] and sum(part.nbytes for part in parts[-1].values()) + tensor.nbytes > shard_bytes:
            parts.append({})
        parts[-1][name] = tensor
    names = [f"model-{number:05}-of-{len(parts):05}.safetensors" for number in range(1, len(parts) + 1)]
    if len(parts) == 1:
        names = [WEIGHTS]
    return tuple(Shard(name, header_bytes(part.items()), part) for name, part in zip(names, parts, strict=True))
