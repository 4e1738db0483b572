"""Describe tensors that are computed row by row when they are written, so that none is ever whole in memory.

A description is a value: a tensor in a file, rows or columns of another, its quantised or dequantised form. Steps
compose descriptions; only the writing pass reads a byte. A block is an array over a few rows, at most about
`BLOCK_BYTES` of what it is made from.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from paddock_stack.bake.dtypes import Array, raw_dtype
from paddock_stack.bake.weights_file import InputFile
from paddock_stack.refusals import Refused

BLOCK_BYTES = 4 * 2**20
MOST_ROW_BYTES = 16 * 2**20
Ranges = tuple[tuple[int, int], ...]


class Tensor(ABC):
    """A tensor of `dtype` (safetensors' name) and `shape` whose elements come on demand."""

    dtype: str
    shape: tuple[int, ...]

    @abstractmethod
    def rows(self, start: int, stop: int) -> Array:
        """Return rows [start, stop) as raw elements `[stop - start, columns]`, in an array of their own."""

    @property
    @abstractmethod
    def row_cost_bytes(self) -> int:
        """Return about how much memory one row takes while it is made."""

    @property
    def nbytes(self) -> int:
        """Return the size in bytes of all elements."""
        return math.prod(self.shape) * raw_dtype(self.dtype).itemsize

    def blocks(self) -> Iterator[memoryview]:
        """Yield all bytes in order; a block stays valid until two more have been asked for."""
        if self.row_cost_bytes > MOST_ROW_BYTES:
            raise Refused(f"a row of {self.row_cost_bytes} bytes is more than this tool holds in memory")
        step = max(1, BLOCK_BYTES // max(1, self.row_cost_bytes))
        for start in range(0, self.shape[0], step):
            yield as_bytes(self.rows(start, min(start + step, self.shape[0])))


def as_bytes(array: Array) -> memoryview:
    """Return the bytes of `array` in C order."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


@dataclass(frozen=True)
class Stored(Tensor):
    """A tensor as it lies in an input file, from `offset` on."""

    file: InputFile
    offset: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def row_cost_bytes(self) -> int:
        """Return the size of one row in the file."""
        return math.prod(self.shape[1:]) * raw_dtype(self.dtype).itemsize

    def rows(self, start: int, stop: int) -> Array:
        """Read rows [start, stop)."""
        made = np.empty((stop - start, *self.shape[1:]), raw_dtype(self.dtype))
        self.file.read_into(as_bytes(made), self.offset + start * self.row_cost_bytes)
        return made

    def blocks(self) -> Iterator[memoryview]:
        """Yield the bytes in blocks that pay no heed to rows, so that any shape can be copied."""
        buffers = [memoryview(bytearray(min(BLOCK_BYTES, self.nbytes))) for _ in range(3)]
        for number, start in enumerate(range(0, self.nbytes, BLOCK_BYTES)):
            block = buffers[number % 3][: min(BLOCK_BYTES, self.nbytes - start)]
            self.file.read_into(block, self.offset + start)
            yield block


@dataclass(frozen=True)
class Made(Tensor):
    """A small tensor of numbers known beforehand, like the shape beside packed weights."""

    values: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", "I64")
        object.__setattr__(self, "shape", (len(self.values),))

    @property
    def row_cost_bytes(self) -> int:
        """Return the size of one number."""
        return raw_dtype(self.dtype).itemsize

    def rows(self, start: int, stop: int) -> Array:
        """Return the numbers [start, stop)."""
        return np.array(self.values[start:stop], raw_dtype(self.dtype))


@dataclass(frozen=True)
class Rows(Tensor):
    """The rows of `of` that lie in `ranges`, in the order of `ranges`."""

    of: Tensor
    ranges: Ranges

    def __post_init__(self) -> None:
        _check_ranges(self.ranges, self.of.shape[0], "rows")
        object.__setattr__(self, "dtype", self.of.dtype)
        object.__setattr__(self, "shape", (_length(self.ranges), *self.of.shape[1:]))

    @property
    def row_cost_bytes(self) -> int:
        """Return what a row of `of` costs."""
        return self.of.row_cost_bytes

    def rows(self, start: int, stop: int) -> Array:
        """Return rows [start, stop) of the selection."""
        return np.concatenate([self.of.rows(*part) for part in slice_ranges(self.ranges, start, stop)])


@dataclass(frozen=True)
class Columns(Tensor):
    """The columns of the matrix `of` that lie in `ranges`, in the order of `ranges`."""

    of: Tensor
    ranges: Ranges

    def __post_init__(self) -> None:
        _check_ranges(self.ranges, self.of.shape[1], "columns")
        object.__setattr__(self, "dtype", self.of.dtype)
        object.__setattr__(self, "shape", (self.of.shape[0], _length(self.ranges)))

    @property
    def row_cost_bytes(self) -> int:
        """Return what a whole row of `of` costs."""
        return self.of.row_cost_bytes

    def rows(self, start: int, stop: int) -> Array:
        """Return rows [start, stop), cut."""
        whole = self.of.rows(start, stop)
        return np.concatenate([whole[:, first:last] for first, last in self.ranges], axis=1)


def ranges_of(indices: Sequence[int], width: int = 1) -> Ranges:
    """Return the ranges covered by `indices`, each `width` wide, neighbours joined."""
    ranges: list[tuple[int, int]] = []
    for index in indices:
        first, last = index * width, (index + 1) * width
        if ranges and ranges[-1][1] == first:
            first = ranges.pop()[0]
        ranges.append((first, last))
    return tuple(ranges)


def slice_ranges(ranges: Ranges, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of `ranges` that hold positions [start, stop) of their concatenation."""
    ends = list(accumulate(last - first for first, last in ranges))
    for number in range(bisect_right(ends, start), len(ranges)):
        first, last = ranges[number]
        before = ends[number] - (last - first)
        if before >= stop:
            return
        yield first + max(0, start - before), first + min(last - first, stop - before)


def _length(ranges: Ranges) -> int:
    return sum(last - first for first, last in ranges)


def _check_ranges(ranges: Ranges, size: int, what: str) -> None:
    if not ranges or not all(0 <= first < last <= size for first, last in ranges):
        raise Refused(f"{what} were asked for that a tensor with {size} of them doesn't have")
