"""Quantise to small integers and back, in the form that compressed-tensors calls pack-quantized.

A weight `[rows, columns]` becomes three tensors: `weight_packed` `[rows, columns · bits / 32]` int32, the first column
in the lowest bits, each value stored with 2^(bits-1) added; `weight_scale` `[rows, columns / group]` in the weight's
own float type; `weight_shape`, the two sizes. A value w is read as q · scale. Scales are max|w| / (2^bits - 1) · 2, as
compressed-tensors' own observer makes them, so |w - q · scale| ≤ scale / 2 but for the scale's rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from paddock_stack.bake.dtypes import EPSILON, FLOATS, Array, Floats, from_float32, to_float32
from paddock_stack.bake.tensors import Made, Tensor
from paddock_stack.refusals import Refused

WHOLE_ROW = -1  # the group size that stands for one scale a row


@dataclass(frozen=True)
class Scheme:
    """Say how weights are quantised: symmetric, `bits` each, one scale for `group_size` columns of a row."""

    bits: int
    group_size: int

    def __post_init__(self) -> None:
        if self.bits not in (4, 8):
            raise Refused(f"weights can be quantised to 4 or 8 bits, not {self.bits}")
        if self.group_size != WHOLE_ROW and not (self.group_size >= 8 and self.group_size % 8 == 0):
            raise Refused(f"a group is a multiple of 8 columns, or {WHOLE_ROW} for a whole row, not {self.group_size}")

    def group(self, columns: int) -> int:
        """Return how many columns share a scale; raise `Refused` where they don't divide `columns`."""
        group = columns if self.group_size == WHOLE_ROW else self.group_size
        if columns % group or columns * self.bits % 32:
            raise Refused(f"{columns} columns can't be quantised to {self.bits} bits in groups of {group}")
        return group

    def words(self, columns: int) -> int:
        """Return how many 32-bit words hold a row of `columns`."""
        return math.ceil(columns * self.bits / 32)

    def shapes(self, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the three tensors that stand for a weight `[rows, columns]`."""
        scales = columns // self.group(columns)
        return {
            "weight_packed": (rows, self.words(columns)),
            "weight_scale": (rows, scales),
            "weight_shape": (2,),
        }


def scales_of(weights: Floats, scheme: Scheme, dtype: str) -> Array:
    """Return the raw scales `[rows, groups]` of `weights` `[rows, columns]`; raise `Refused` where one isn't finite."""
    most = _largest(weights.reshape(len(weights), -1, scheme.group(weights.shape[1])))
    if not np.isfinite(most).all():
        raise Refused("a weight to be quantised holds a value that is not finite")
    scales = from_float32(most / np.float32((2**scheme.bits - 1) / 2), dtype)
    # Rounding can also make a scale of subnormal weights zero.
    zero = to_float32(scales, dtype) == 0
    scales[zero] = from_float32(np.array([EPSILON[dtype]], np.float32), dtype)[0]
    return scales


def _largest(grouped: Floats) -> Floats:
    """Return the largest magnitude along the last axis. Halving it is three times as fast as numpy's own maximum."""
    left = np.abs(grouped)
    while left.shape[2] % 2 == 0:
        half = left.shape[2] // 2
        left = np.maximum(left[:, :, :half], left[:, :, half:])
    most: Floats = left.max(axis=2)
    return most


def quantised(weights: Floats, scales: Floats, bits: int) -> Array:
    """Return the integers, 2^(bits-1) added, uint8 `[rows, columns]`, of `weights` under `scales` `[rows, groups]`."""
    half = 2 ** (bits - 1)
    grouped = weights.reshape(*scales.shape, -1) / scales[:, :, None]
    np.rint(grouped, out=grouped)
    np.clip(grouped, -half, half - 1, out=grouped)
    grouped += half
    return grouped.astype(np.uint8).reshape(weights.shape)


def packed(values: Array, bits: int) -> Array:
    """Return uint8 `values` `[rows, columns]`, each below 2^bits, as int32 words `[rows, columns · bits / 32]`."""
    if bits == 4:
        values = values[:, 0::2] | (values[:, 1::2] << np.uint8(4))
    return np.ascontiguousarray(values).view("<i4")


def unpacked(words: Array, bits: int) -> Array:
    """Return the uint8 values `[rows, columns]` that int32 `words` hold."""
    values = np.ascontiguousarray(words).view(np.uint8)
    if bits == 8:
        return values
    return np.stack([values & np.uint8(15), values >> np.uint8(4)], axis=2).reshape(len(values), -1)


@dataclass(frozen=True)
class Scales(Tensor):
    """The scales of a float matrix under a scheme."""

    of: Tensor
    scheme: Scheme

    def __post_init__(self) -> None:
        _check_matrix(self.of)
        object.__setattr__(self, "dtype", self.of.dtype)
        object.__setattr__(self, "shape", self.scheme.shapes(*self.of.shape)["weight_scale"])

    @property
    def row_cost_bytes(self) -> int:
        """Return the cost of a row of floats beside that of its source."""
        return self.of.row_cost_bytes + 8 * self.of.shape[1]

    def rows(self, start: int, stop: int) -> Array:
        """Return the scales of rows [start, stop)."""
        return scales_of(to_float32(self.of.rows(start, stop), self.of.dtype), self.scheme, self.dtype)


@dataclass(frozen=True)
class Packed(Tensor):
    """The packed integers of a float matrix under a scheme."""

    of: Tensor
    scheme: Scheme

    def __post_init__(self) -> None:
        _check_matrix(self.of)
        object.__setattr__(self, "dtype", "I32")
        object.__setattr__(self, "shape", self.scheme.shapes(*self.of.shape)["weight_packed"])

    @property
    def row_cost_bytes(self) -> int:
        """Return the cost of a row as floats, quotients and integers beside that of its source."""
        return self.of.row_cost_bytes + 10 * self.of.shape[1]

    def rows(self, start: int, stop: int) -> Array:
        """Return the packed rows [start, stop)."""
        weights = to_float32(self.of.rows(start, stop), self.of.dtype)
        scales = to_float32(scales_of(weights, self.scheme, self.of.dtype), self.of.dtype)
        return packed(quantised(weights, scales, self.scheme.bits), self.scheme.bits)


@dataclass(frozen=True)
class Dequantised(Tensor):
    """The floats `[rows, columns]` that packed integers and scales stand for, in the scales' own type."""

    words: Tensor
    scales: Tensor
    columns: int
    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.scales.dtype)
        object.__setattr__(self, "shape", (self.words.shape[0], self.columns))

    @property
    def row_cost_bytes(self) -> int:
        """Return the cost of a row as bytes and floats."""
        return self.words.row_cost_bytes + self.scales.row_cost_bytes + 12 * self.columns

    def rows(self, start: int, stop: int) -> Array:
        """Return rows [start, stop), rounded once, as a server that dequantises would."""
        values = unpacked(self.words.rows(start, stop), self.bits)[:, : self.columns].astype(np.float32)
        values -= np.float32(2 ** (self.bits - 1))
        scales = to_float32(self.scales.rows(start, stop), self.dtype)
        if not np.isfinite(scales).all():
            raise Refused("a scale of the weights to be dequantised is not finite")
        values = values.reshape(*scales.shape, -1) * scales[:, :, None]
        return from_float32(values.reshape(stop - start, self.columns), self.dtype)


def quantise(of: Tensor, scheme: Scheme) -> dict[str, Tensor]:
    """Return the three tensors that stand for `of` under `scheme`, by the last part of their names."""
    rows, columns = _check_matrix(of)
    shape = Made((rows, columns))
    return {"weight_packed": Packed(of, scheme), "weight_scale": Scales(of, scheme), "weight_shape": shape}


def _check_matrix(of: Tensor) -> tuple[int, int]:
    if of.dtype not in FLOATS:
        raise Refused(f"weights of dtype {of.dtype} can't be quantised; {', '.join(FLOATS)} can")
    if len(of.shape) != 2:
        raise Refused(f"a tensor of shape {list(of.shape)} is no matrix that could be quantised")
    return of.shape[0], of.shape[1]
