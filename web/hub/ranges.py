"""Read the one form of Range header that clients of the Hub send."""

import re
from dataclasses import dataclass

from storage.errors import Invalid

_ONE_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


class RangeNotSatisfiable(Invalid):
    """The range begins where the file has ended."""

    code = "RANGE_NOT_SATISFIABLE"

    def __init__(self, size: int) -> None:
        """Say how many bytes there are."""
        super().__init__(f"The range lies outside the {size} bytes there are.")
        self.size = size


@dataclass(frozen=True)
class Span:
    """Bytes `start..end`, end exclusive; `is_partial` when a range was asked for."""

    start: int
    end: int
    is_partial: bool

    @property
    def length(self) -> int:
        """Count the bytes."""
        return self.end - self.start

    def content_range(self, size: int) -> str:
        """Write the Content-Range header for a whole of `size` bytes."""
        return f"bytes {self.start}-{self.end - 1}/{size}"


def parse_range(header: str | None, size: int) -> Span:
    """Apply a Range header to `size` bytes; several ranges, or another form, give the whole.

    Raises:
        RangeNotSatisfiable: no byte of it exists.
    """
    match = _ONE_RANGE.fullmatch(header.strip()) if header else None
    if match is None or match.groups() == ("", ""):
        return Span(0, size, is_partial=False)
    first, last = match.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(int(last) + 1, size) if first and last else size
    if not (start < end):
        raise RangeNotSatisfiable(size)
    return Span(start, end, is_partial=True)
