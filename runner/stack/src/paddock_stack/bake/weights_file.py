"""Read and write the header of a safetensors file, and read its bytes at an offset.

A file is eight bytes with the header's length, a JSON header padded with spaces, then the tensors without a gap:

    {"model.norm.weight": {"dtype": "BF16", "shape": [2560], "data_offsets": [0, 5120]}, "__metadata__": {…}}
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from paddock_stack.bake.dtypes import raw_dtype
from paddock_stack.refusals import Refused

MOST_HEADER_BYTES = 100 * 2**20  # the format's own limit


class Shaped(Protocol):
    """What a header says of one tensor."""

    @property
    def dtype(self) -> str:
        """Return the safetensors name of the element type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes, outermost first."""


@dataclass(frozen=True)
class Entry:
    """Say where in a file one tensor lies; `offset` counts bytes from the file's start."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Identity:
    """Tell a file from what it becomes when somebody writes to it."""

    size_bytes: int
    modified_ns: int


class InputFile:
    """Keep one input file open, so that a bake reads the same bytes whatever happens to the name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = os.open(path, os.O_RDONLY)
        except OSError as fault:
            raise Refused(f"{path} can't be read: {fault.strerror}") from fault
        self.identity = self.identity_now()

    def identity_now(self) -> Identity:
        """Return the size and time of the open file as they are at this moment."""
        seen = os.fstat(self._fd)
        return Identity(seen.st_size, seen.st_mtime_ns)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Fill `buffer` from `offset` on; raise `Refused` where the file has become shorter meanwhile."""
        while buffer:
            done = os.preadv(self._fd, [buffer], offset)
            if done == 0:
                raise Refused(f"{self.path} has become shorter while it was read")
            buffer, offset = buffer[done:], offset + done

    def close(self) -> None:
        """Close the file; reading it afterwards is an error."""
        os.close(self._fd)


def read_header(file: InputFile) -> dict[str, Entry]:
    """Return the entries of `file`, in the order of their bytes.

    Raises:
        Refused: the file is truncated, has gaps or overlaps, or its header is no header.
    """
    size = file.identity.size_bytes
    length = int.from_bytes(_bytes(file, 0, 8), "little") if size >= 8 else size
    if not (length <= MOST_HEADER_BYTES) or not (8 + length <= size):
        raise Refused(f"{file.path} is truncated: its header is not all there")
    try:
        held = json.loads(_bytes(file, 8, length))
        held.pop("__metadata__", None)
        entries = {name: _entry(fields, 8 + length) for name, fields in held.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as fault:
        raise Refused(f"{file.path} has a header that is not one of a safetensors file ({fault})") from fault
    entries = dict(sorted(entries.items(), key=lambda item: (item[1].offset, item[1].nbytes)))
    _check_layout(file, entries.values(), 8 + length)
    return entries


def _bytes(file: InputFile, offset: int, length: int) -> bytes:
    buffer = bytearray(length)
    file.read_into(memoryview(buffer), offset)
    return bytes(buffer)


def _entry(fields: dict[str, Any], data_start: int) -> Entry:
    start, end = fields["data_offsets"]
    entry = Entry(fields["dtype"], tuple(fields["shape"]), data_start + start, end - start)
    if not all(isinstance(size, int) and size >= 0 for size in (start, end, *entry.shape)):
        raise ValueError("sizes and offsets that are no whole numbers")
    if entry.nbytes != math.prod(entry.shape) * raw_dtype(entry.dtype).itemsize:
        raise ValueError(f"a tensor of shape {list(entry.shape)} and dtype {entry.dtype} with {entry.nbytes} bytes")
    return entry


def _check_layout(file: InputFile, entries: Iterable[Entry], position: int) -> None:
    for entry in entries:
        if entry.offset != position:
            raise Refused(f"{file.path} has a gap or an overlap at byte {position}")
        position += entry.nbytes
    if position != file.identity.size_bytes:
        raise Refused(f"{file.path} is truncated or too long: {file.identity.size_bytes} bytes instead of {position}")


def header_bytes(tensors: Iterable[tuple[str, Shaped]]) -> bytes:
    """Return the start of a file that will hold `tensors` in that order."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    position = 0
    for name, tensor in tensors:
        end = position + math.prod(tensor.shape) * raw_dtype(tensor.dtype).itemsize
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text
