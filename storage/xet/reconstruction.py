"""Plan which chunks of which xorbs give a byte range of a file, and write the plan as clients read it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storage.xet.hashes import Digest, to_text
from storage.xet.shards import Term
from storage.xet.tables import ChunkTable


@dataclass(frozen=True, slots=True, order=True)
class ChunkRange:
    """Chunks `start..end`, end exclusive."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Terms trimmed to a range; the range starts `skip` bytes into the first of them."""

    skip: int
    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Fetch:
    """Chunks of a xorb to fetch, and where they lie in the serialised xorb: `first_byte` to `last_byte` inclusive."""

    xorb: Digest
    chunks: ChunkRange
    first_byte: int
    last_byte: int


SignUrl = Callable[[Fetch], str]


def plan(terms: Iterable[Term], tables: Mapping[Digest, ChunkTable], start: int, end: int) -> Plan:
    """Trim `terms` to the chunks that overlap the file's bytes `start..end`, end exclusive."""
    kept: list[Term] = []
    position, skip = 0, 0
    for term in terms:
        if position >= end:
            break
        if position + term.length > start:
            first, last, lead = _overlap(term, tables[term.xorb], start - position, end - position)
            skip = skip if kept else lead
            kept.append(_cut(term, tables[term.xorb], first, last))
        position += term.length
    return Plan(skip, tuple(kept))


def fetches(plan: Plan, tables: Mapping[Digest, ChunkTable]) -> dict[Digest, list[Fetch]]:
    """List per xorb what a plan needs, each chunk once: ranges that touch or overlap are joined."""
    ranges: dict[Digest, list[ChunkRange]] = {}
    for term in plan.terms:
        ranges.setdefault(term.xorb, []).append(ChunkRange(term.start, term.end))
    return {xorb: [_fetch(xorb, tables[xorb], r) for r in join(found)] for xorb, found in ranges.items()}


def to_v2(plan: Plan, needed: Mapping[Digest, list[Fetch]], sign: SignUrl) -> dict[str, Any]:
    """Write the answer of `/v2/reconstructions`; one URL per range, so that no client needs multipart answers."""
    return _answer(plan) | {
        "xorbs": {to_text(xorb): [_v2_entry(fetch, sign) for fetch in found] for xorb, found in needed.items()}
    }


def to_v1(plan: Plan, needed: Mapping[Digest, list[Fetch]], sign: SignUrl) -> dict[str, Any]:
    """Write the answer of `/v1/reconstructions`."""
    return _answer(plan) | {
        "fetch_info": {to_text(xorb): [_v1_entry(fetch, sign) for fetch in found] for xorb, found in needed.items()}
    }


def _overlap(term: Term, table: ChunkTable, start: int, end: int) -> tuple[int, int, int]:
    """Find the first and end chunk that cover term bytes `start..end`, and how far `start` lies in the first."""
    base = table.unpacked_ends[term.start]
    first = _chunk_at(table, base + max(start, 0), term.start, term.end)
    last = _chunk_at(table, base + min(end, term.length) - 1, term.start, term.end)
    return first, last + 1, base + max(start, 0) - table.unpacked_ends[first]


def _chunk_at(table: ChunkTable, offset: int, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if table.unpacked_ends[middle] <= offset else (low, middle)
    return low


def _cut(term: Term, table: ChunkTable, first: int, end: int) -> Term:
    return Term(term.xorb, first, end, table.length(first, end))


def join(ranges: Iterable[ChunkRange]) -> list[ChunkRange]:
    """Put ranges in order, and those that touch or overlap together."""
    joined: list[ChunkRange] = []
    for current in sorted(ranges):
        if joined and current.start <= joined[-1].end:
            joined[-1] = ChunkRange(joined[-1].start, max(joined[-1].end, current.end))
        else:
            joined.append(current)
    return joined


def _fetch(xorb: Digest, table: ChunkTable, chunks: ChunkRange) -> Fetch:
    return Fetch(xorb, chunks, table.stored_ends[chunks.start], table.stored_ends[chunks.end] - 1)


def _answer(plan: Plan) -> dict[str, Any]:
    return {
        "offset_into_first_range": plan.skip,
        "terms": [
            {"hash": to_text(t.xorb), "unpacked_length": t.length, "range": {"start": t.start, "end": t.end}}
            for t in plan.terms
        ],
    }


def _v2_entry(fetch: Fetch, sign: SignUrl) -> dict[str, Any]:
    chunks = {"start": fetch.chunks.start, "end": fetch.chunks.end}
    return {"url": sign(fetch), "ranges": [{"chunks": chunks, "bytes": _byte_range(fetch)}]}


def _v1_entry(fetch: Fetch, sign: SignUrl) -> dict[str, Any]:
    chunks = {"start": fetch.chunks.start, "end": fetch.chunks.end}
    return {"url": sign(fetch), "range": chunks, "url_range": _byte_range(fetch)}


def _byte_range(fetch: Fetch) -> dict[str, int]:
    return {"start": fetch.first_byte, "end": fetch.last_byte}
