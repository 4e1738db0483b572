"""A plan gives exactly the bytes that were asked for, from no more chunks than they need."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from storage.xet.hashes import to_text
from storage.xet.reconstruction import Fetch, fetches, plan, to_v1, to_v2
from storage.xet.shards import Term
from tests.storage.xet.builders import xorb

sizes = st.lists(st.integers(1, 20), min_size=1, max_size=6)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[Term], dict, dict, bytes]:
    """Draw a file over some xorbs: its terms, the tables, the xorbs' chunks, and its bytes."""
    tables, chunks, terms, data = {}, {}, [], b""
    for index in range(draw(st.integers(1, 3))):
        pieces = [bytes([index * 50 + i]) * length for i, length in enumerate(draw(sizes))]
        _, table, name = xorb(pieces)
        tables[name], chunks[name] = table, pieces
    for name in draw(st.lists(st.sampled_from(list(tables)), min_size=1, max_size=5)):
        start = draw(st.integers(0, len(chunks[name]) - 1))
        end = draw(st.integers(start + 1, len(chunks[name])))
        piece = b"".join(chunks[name][start:end])
        terms.append(Term(name, start, end, len(piece)))
        data += piece
    return terms, tables, chunks, data


@given(files(), st.data())
@settings(deadline=None)
def test_a_plan_gives_exactly_the_range(file: tuple, data: st.DataObject) -> None:
    terms, tables, chunks, whole = file
    start = data.draw(st.integers(0, len(whole) - 1))
    end = data.draw(st.integers(start + 1, len(whole)))
    made = plan(terms, tables, start, end)
    got = b"".join(b"".join(chunks[term.xorb][term.start : term.end]) for term in made.terms)
    assert got[made.skip : made.skip + end - start] == whole[start:end]
    assert sum(term.length for term in made.terms) == len(got)
    first, last = made.terms[0], made.terms[-1]
    assert made.skip < len(chunks[first.xorb][first.start])
    assert len(got) - made.skip - (end - start) < len(chunks[last.xorb][last.end - 1])


@given(files())
@settings(deadline=None)
def test_every_term_lies_inside_one_fetch_and_no_chunk_is_fetched_twice(file: tuple) -> None:
    terms, tables, _, whole = file
    made = plan(terms, tables, 0, len(whole))
    needed = fetches(made, tables)
    for term in made.terms:
        assert any(f.chunks.start <= term.start and term.end <= f.chunks.end for f in needed[term.xorb])
    for found in needed.values():
        assert all(a.chunks.end < b.chunks.start for a, b in pairwise(found))


def test_both_forms_name_inclusive_bytes_and_exclusive_chunks() -> None:
    raw, table, name = xorb([b"one", b"three", b"fourteen"])
    made = plan([Term(name, 0, 3, 16)], tables := {name: table}, 4, 9)
    needed = fetches(made, tables)

    def sign(fetch: Fetch) -> str:
        return f"signed-{fetch.first_byte}"

    term = {"hash": to_text(name), "unpacked_length": 13, "range": {"start": 1, "end": 3}}
    span = {"start": 11, "end": len(raw) - 1}
    assert to_v2(made, needed, sign) == {
        "offset_into_first_range": 1,
        "terms": [term],
        "xorbs": {to_text(name): [{"url": "signed-11", "ranges": [{"chunks": {"start": 1, "end": 3}, "bytes": span}]}]},
    }
    assert to_v1(made, needed, sign)["fetch_info"] == {
        to_text(name): [{"url": "signed-11", "range": {"start": 1, "end": 3}, "url_range": span}]
    }


def test_an_empty_range_needs_nothing() -> None:
    assert plan([], {}, 0, 0).terms == ()
