"""Decide whether a claimed file is what its terms add up to."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest, file_hash_of, term_hash
from storage.xet.shards import FileClaim, Term
from storage.xet.tables import ChunkTable

MAX_FILE_CHUNKS = 1 << 19
"""Most chunks of one file: 32 GiB in chunks of 64 KiB, and about a second of hashing."""


def anywhere(_term: Term) -> bool:
    """Allow every term whose xorb is known."""
    return True


def verify_file(
    claim: FileClaim, tables: Mapping[Digest, ChunkTable], *, may_use: Callable[[Term], bool] = anywhere
) -> int:
    """Return the file's size in bytes, if every term and the whole hash to what was claimed.

    `tables` holds the xorbs this uploader may build on, `may_use` says of a term whether it keeps to the
    chunks of one that it may read. What it may not use and what isn't there answer alike.

    Raises:
        InvalidXet: at the first thing that doesn't hold.
    """
    if not (count_chunks(claim.terms) <= MAX_FILE_CHUNKS):
        hint = "That is about 32 GiB: upload a larger one as several files."
        raise InvalidXet(f"A file has at most {MAX_FILE_CHUNKS} chunks.", hint=hint)
    for term, proof in zip(claim.terms, claim.proofs, strict=True):
        _check_term(term, tables.get(term.xorb) if may_use(term) else None)
        if term_hash(tables[term.xorb].raw_digests(term.start, term.end)) != proof:
            raise InvalidXet("A term's verification hash does not match its chunks.")
    if file_hash_of(tables[term.xorb].stretch(term.start, term.end) for term in claim.terms) != claim.digest:
        raise InvalidXet("The terms of a file do not hash to its name.")
    return sum(term.length for term in claim.terms)


def verify_content(digest: Digest, size: int, terms: Sequence[Term], table_of: Callable[[Digest], ChunkTable]) -> None:
    """Check a recorded file of `size` bytes against the tables of its xorbs, one in use at a time.

    Raises:
        InvalidXet: at the first thing that doesn't hold.
    """
    for term in terms:
        _check_term(term, table_of(term.xorb))
    if sum(term.length for term in terms) != size:
        raise InvalidXet("The terms of a file do not add up to its size.")
    if file_hash_of(table_of(term.xorb).stretch(term.start, term.end) for term in terms) != digest:
        raise InvalidXet("The terms of a file do not hash to its name.")


def count_chunks(terms: Iterable[Term]) -> int:
    """Count the chunks that terms span; one that runs backwards counts nothing, rather than hide others."""
    return sum(max(0, term.end - term.start) for term in terms)


def _check_term(term: Term, table: ChunkTable | None) -> None:
    if table is None:
        raise InvalidXet("A file is built on chunks that are not this uploader's to use: send them.")
    if not (0 <= term.start < term.end <= len(table)):
        raise InvalidXet(f"Chunks {term.start} to {term.end} lie outside a xorb of {len(table)}.")
    if table.length(term.start, term.end) != term.length:
        raise InvalidXet("A term's length is not that of its chunks.")
