"""Hold a baked folder against its own words: files against digests, shapes against configuration, scales finite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from paddock_stack.bake.checkpoint import PROVENANCE, Checkpoint, open_checkpoint, read_json
from paddock_stack.bake.dtypes import to_float32
from paddock_stack.bake.hashing import digest_of
from paddock_stack.bake.names import PACKED_FORM, module_of
from paddock_stack.bake.quantization import dict_of
from paddock_stack.bake.tensors import BLOCK_BYTES
from paddock_stack.refusals import Refused


@dataclass(frozen=True)
class Verified:
    """Count what was checked."""

    files: int
    tensors: int
    packed_modules: int


def verify(folder: Path) -> Verified:
    """Check the baked folder `folder` and return the counts; raise `Refused` at the first thing that is wrong."""
    checkpoint = open_checkpoint(folder)  # shapes and the form of each matrix against the configuration
    try:
        packed = [module_of(name) for name in checkpoint.tensors if name.endswith(f".{PACKED_FORM[0]}")]
        for module in packed:
            _check_scales(checkpoint, module)
            _check_shape(checkpoint, module)
        return Verified(_check_files(folder), len(checkpoint.tensors), len(packed))
    finally:
        checkpoint.close()


def _check_files(folder: Path) -> int:
    promised = dict_of(read_json(folder / PROVENANCE).get("files"))
    present = {path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")}
    strange = sorted(present ^ ({*promised, PROVENANCE}))
    if strange:
        raise Refused(
            f"{strange[0]} is {'not promised by' if strange[0] in present else 'missing, but in'} {PROVENANCE}"
        )
    for name, digest in promised.items():
        if digest_of(folder / name).record() != digest:
            raise Refused(f"{folder / name} is not the file that {PROVENANCE} was written for")
    return len(promised)


def _check_scales(checkpoint: Checkpoint, module: str) -> None:
    scales = checkpoint.tensors[f"{module}.weight_scale"]
    step = max(1, BLOCK_BYTES // scales.row_cost_bytes)
    for start in range(0, scales.shape[0], step):
        raw = scales.rows(start, min(start + step, scales.shape[0]))
        values = to_float32(raw, scales.dtype)
        if not (np.isfinite(values) & (values > 0)).all():
            raise Refused(f"{module}.weight_scale holds a value that is not finite and above zero")


def _check_shape(checkpoint: Checkpoint, module: str) -> None:
    told = [int(size) for size in checkpoint.tensors[f"{module}.weight_shape"].rows(0, 2)]
    held = checkpoint.tensors[f"{module}.weight_packed"].shape
    if told[0] != held[0] or -(-told[1] // 8) > held[1]:
        raise Refused(f"{module}.weight_shape says {told}, which doesn't fit its packed weights {list(held)}")
