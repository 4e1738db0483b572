"""Count, in memory, what the files of one scope come to: exact under any order of changes."""

from array import array
from dataclasses import dataclass, field
from typing import Protocol

from storage.quota_shapes import Span


class MeterDrifted(Exception):
    """A count would fall below nothing: contents were repaired behind the meter's back."""


class Layout(Protocol):
    """Where contents lie; `storage.quota_shapes.Shapes` reads it from the database."""

    def spans(self, digest: str) -> tuple[Span, ...]:
        """Return the chunks of a content."""

    def ends(self, xorb: str) -> "array[int]":
        """Return where each chunk of a xorb ends, after a leading 0."""


@dataclass(frozen=True)
class Usage:
    """Bytes of all files, bytes of their different chunks, and number of files."""

    size: int = 0
    stored: int = 0
    files: int = 0


@dataclass
class Tally:
    """Totals of a scope, with what is needed to change them by some files.

    `files_of` counts a content's files; `uses` counts, per chunk of a xorb, the contents that have it.
    """

    layout: Layout
    size: int = 0
    stored: int = 0
    files: int = 0
    files_of: dict[str, int] = field(default_factory=dict)
    uses: "dict[str, array[int]]" = field(default_factory=dict)

    @property
    def usage(self) -> Usage:
        """The totals."""
        return Usage(self.size, self.stored, self.files)

    def change(self, digest: str, *, size: int, by: int) -> None:
        """Add `by` files of a content of `size` bytes, or take them away where `by` is negative.

        Raises:
            MeterDrifted: there are not so many; the tally is then worth nothing.
        """
        before = self.files_of.get(digest, 0)
        after = before + by
        if after < 0:
            raise MeterDrifted(f"{-by} files of {digest} are to go where {before} are.")
        self.files_of[digest] = after
        self.size += by * size
        self.files += by
        if (before > 0) != (after > 0):
            self._mark(digest, 1 if after else -1)

    def _mark(self, digest: str, step: int) -> None:
        for span in self.layout.spans(digest):
            uses, ends = self._uses(span), self.layout.ends(span.xorb)
            had = uses[span.start : span.end]
            if step < 0 and not all(had):
                raise MeterDrifted(f"Chunks of {span.xorb} are to go that nothing uses.")
            uses[span.start : span.end] = array("I", [count + step for count in had])
            self.stored += step * sum(_length(ends, start, end) for start, end in _edges(had, step, span))

    def _uses(self, span: Span) -> "array[int]":
        uses = self.uses.setdefault(span.xorb, array("I"))
        if len(uses) < span.end:
            uses.frombytes(bytes(4 * (span.end - len(uses))))
        return uses


def _edges(had: "array[int]", step: int, span: Span) -> list[tuple[int, int]]:
    """List the runs of chunks that come to be used, or cease to be."""
    if max(had) == min(had):  # as most often: no need to look at each
        return [(span.start, span.end)] if min(had[0], had[0] + step) == 0 else []
    return [(at, at + 1) for at, count in enumerate(had, span.start) if min(count, count + step) == 0]


def _length(ends: "array[int]", start: int, end: int) -> int:
    last = len(ends) - 1
    return ends[min(end, last)] - ends[min(start, last)] if last > 0 else 0
