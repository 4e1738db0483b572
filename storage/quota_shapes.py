"""Read which chunks of which xorbs contents are made of, and how long those chunks are."""

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlmodel import Session, col, select

from storage.local import upserts
from storage.local.rows import ContentRow, XorbRow
from storage.xet.hashes import to_text
from storage.xet.shards import Term
from storage.xet.tables import parse_table
from storage.xet.terms import parse_terms


@dataclass(frozen=True, slots=True)
class Span:
    """Chunks `start..end` (end exclusive) of a xorb."""

    xorb: str
    start: int
    end: int


class Shapes:
    """The layout of contents, fetched as they are asked for and kept for one piece of work."""

    def __init__(self, session: Session) -> None:
        """Bind to an open session."""
        self._session = session
        self._spans: dict[str, tuple[Span, ...]] = {}
        self._ends: dict[str, array[int]] = {}

    def fetch(self, digests: Collection[str]) -> None:
        """Read the layout of those contents that aren't known yet."""
        missing = sorted(set(digests) - self._spans.keys())
        self._spans |= dict.fromkeys(missing, ())  # the empty file is made of nothing and recorded nowhere
        for some in upserts.slices(missing):
            query = select(ContentRow.digest, ContentRow.terms).where(col(ContentRow.digest).in_(some))
            self._spans.update({digest: merge(parse_terms(terms)) for digest, terms in self._session.exec(query)})
        self._fetch_ends({span.xorb for digest in missing for span in self._spans[digest]})

    def spans(self, digest: str) -> tuple[Span, ...]:
        """Return the chunks of a fetched content, each once however often the file repeats it."""
        return self._spans[digest]

    def ends(self, xorb: str) -> "array[int]":
        """Return where each chunk of a fetched xorb ends, unpacked, after a leading 0; empty if the xorb is lost."""
        return self._ends[xorb]

    def _fetch_ends(self, xorbs: set[str]) -> None:
        missing = sorted(xorbs - self._ends.keys())
        self._ends |= {xorb: array("I") for xorb in missing}
        for some in upserts.slices(missing):
            query = select(XorbRow.digest, XorbRow.chunks).where(col(XorbRow.digest).in_(some))
            self._ends.update(
                {digest: parse_table(chunks).unpacked_ends for digest, chunks in self._session.exec(query)}
            )


def merge(terms: Iterable[Term]) -> tuple[Span, ...]:
    """Join a file's terms so that no chunk is in two spans."""
    by_xorb: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for term in terms:
        by_xorb[to_text(term.xorb)].append((term.start, term.end))
    return tuple(Span(xorb, *span) for xorb, spans in by_xorb.items() for span in _joined(spans))


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
