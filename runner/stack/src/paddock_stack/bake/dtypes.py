"""Know the element types of safetensors files, and turn bfloat16 into float32 and back without torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from paddock_stack.refusals import Refused

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]

# The type under which raw elements travel through a bake. bfloat16 and the 8-bit floats have none in numpy: their bits.
RAW: dict[str, str] = {
    **{"BOOL": "u1", "U8": "u1", "I8": "i1", "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1"},
    **{"U16": "<u2", "I16": "<i2", "F16": "<f2", "BF16": "<u2"},
    **{"U32": "<u4", "I32": "<i4", "F32": "<f4", "U64": "<u8", "I64": "<i8", "F64": "<f8"},
}
FLOATS = ("BF16", "F16", "F32")
# As compressed-tensors does, a group of zeros gets this scale: torch.finfo(dtype).eps.
EPSILON = {"BF16": 2.0**-7, "F16": 2.0**-10, "F32": 2.0**-23}


def raw_dtype(name: str) -> np.dtype[Any]:
    """Return the numpy type of a safetensors dtype's raw elements; raise `Refused` for one nobody here knows."""
    if name not in RAW:
        raise Refused(f"the dtype {name} is not one that this tool can handle")
    return np.dtype(RAW[name])


def to_float32(raw: Array, dtype: str) -> Floats:
    """Return raw elements of a dtype in `FLOATS` as float32, exactly."""
    if dtype == "BF16":
        return (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return raw.astype(np.float32)


def from_float32(values: Floats, dtype: str) -> Array:
    """Return finite `values` as raw elements of a dtype in `FLOATS`, rounded to nearest, ties to even."""
    if dtype == "BF16":
        bits = np.ascontiguousarray(values).view(np.uint32)
        return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype("<u2")
    return values.astype(RAW[dtype])
