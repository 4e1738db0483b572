"""Write a plan in one streaming pass: all or nothing under the final name, finished files kept for a restart."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

from paddock_stack.bake.building import Building, is_baked, write_durably
from paddock_stack.bake.checkpoint import CONFIG, INDEX, PROVENANCE, WEIGHTS, read_json
from paddock_stack.bake.hashing import Digest, HashedFile, InputDigests, digest_of
from paddock_stack.bake.plan import TOOL, Plan, Shard
from paddock_stack.bake.tensors import Stored, Tensor
from paddock_stack.bake.weights_file import InputFile
from paddock_stack.refusals import Refused

SPARE_BYTES = 2**20  # for the small files and the folder's own blocks


class Counting(Protocol):
    """What a pass tells of its progress."""

    def add(self, count: int, what: str) -> None:
        """Take note that `count` more bytes of the file `what` are written."""


def write(plan: Plan, out: Path, progress: Counting, *, discard: bool = False) -> bool:
    """Write what `plan` says to the folder `out`; return False where it was there already.

    Raises:
        Refused: the disk is full, the input changed, `out` holds something else. `out` is as it was; files that were
            finished stay in `OUT.baking` for the next try.
    """
    if is_baked(out, plan.digest):
        return False
    building = Building(out, plan.digest, discard=discard)
    try:
        with building, InputDigests(plan.before.weights) as inputs:
            _check_space(plan, building)
            _write_weights(plan, building, progress)
            _write_small_files(plan, building, inputs)
            building.publish()
    except OSError as fault:
        stays = f"{len(building.finished)} finished files stay" if building.path.exists() else "nothing stays"
        raise Refused(
            f"{out} can't be written: {fault.strerror}; {stays} in {building.path}; run again to go on"
        ) from fault
    return True


def _write_weights(plan: Plan, building: Building, progress: Counting) -> None:
    for shard in plan.shards:
        if shard.name in building.finished:
            progress.add(shard.nbytes, shard.name)
        else:
            building.keep(shard.name, _write_shard(shard, building.part_path(shard.name), progress))


def _check_space(plan: Plan, building: Building) -> None:
    needed = sum(shard.nbytes for shard in plan.shards if shard.name not in building.finished)
    needed += sum(path.stat().st_size for path in plan.after.others) + SPARE_BYTES
    seen = os.statvfs(building.path)
    free = seen.f_bavail * seen.f_frsize
    if not (needed <= free):
        raise Refused(f"the disk under {building.out} has {free} bytes free, but the bake needs {needed}")


def _write_shard(shard: Shard, path: Path, progress: Counting) -> Digest:
    file = HashedFile(path)
    try:
        file.write(memoryview(shard.header))
        for name, tensor in shard.tensors.items():
            _write_tensor(file, name, tensor, progress, shard.name)
        return file.finish()
    finally:
        file.close()


def _write_tensor(file: HashedFile, name: str, tensor: Tensor, progress: Counting, shard: str) -> None:
    written = 0
    try:
        for block in tensor.blocks():
            file.write(block)
            written += len(block)
            progress.add(len(block), shard)
    except Refused as refusal:
        raise Refused(f"{name}: {refusal}") from refusal
    if written != tensor.nbytes:
        raise Refused(f"{name} came to {written} bytes instead of {tensor.nbytes}, which is a fault of this tool")


def _write_small_files(plan: Plan, building: Building, inputs: InputDigests) -> None:
    files = dict(building.finished)
    for path in plan.after.others:
        files[path.name] = _copy(path, building.path / path.name)
    made = {CONFIG: plan.after.config} | ({INDEX: _index(plan)} if plan.shards[0].name != WEIGHTS else {})
    for name, content in made.items():
        write_durably(building.path / name, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
        files[name] = digest_of(building.path / name)
    provenance = _provenance(plan, inputs.result(), files)
    write_durably(building.path / PROVENANCE, (json.dumps(provenance, indent=2) + "\n").encode())


def _copy(source: Path, target: Path) -> Digest:
    file, copy = InputFile(source), HashedFile(target)
    try:
        for block in Stored(file, 0, "U8", (file.identity.size_bytes,)).blocks():
            copy.write(block)
        return copy.finish()
    finally:
        file.close()
        copy.close()


def _index(plan: Plan) -> dict[str, Any]:
    total = sum(tensor.nbytes for tensor in plan.after.tensors.values())
    places = {name: shard.name for shard in plan.shards for name in shard.tensors}
    return {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}


def _provenance(plan: Plan, weights: dict[str, Digest], files: dict[str, Digest]) -> dict[str, Any]:
    folder = plan.before.folder
    beside = [folder / CONFIG, *plan.before.others]
    parent = weights | {path.name: digest_of(path) for path in beside}
    history = read_json(folder / PROVENANCE) if (folder / PROVENANCE).is_file() else None
    return {
        **{"tool": TOOL, "plan": plan.digest, "steps": list(plan.steps)},
        "parent": {"files": _records(parent), "provenance": history},
        "files": _records(files),
    }


def _records(files: dict[str, Digest]) -> dict[str, Any]:
    return {name: files[name].record() for name in sorted(files)}
