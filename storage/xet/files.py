"""Decide whether a claimed file is what its terms add up to."""

from collections.abc import Iterable, Mapping

from storage.xet.errors import InvalidXet
from storage.xet.hashes import ZERO, Digest, file_hash, term_hash
from storage.xet.shards import FileClaim, Term
from storage.xet.tables import ChunkTable

MAX_FILE_CHUNKS = 1 << 22
"""Most chunks of one file: 256 GiB in chunks of 64 KiB, and about eight seconds of hashing."""


def verify_file(claim: FileClaim, tables: Mapping[Digest, ChunkTable]) -> int:
    """Return the file's size in bytes, if every term and the whole hash to what was claimed.

    `tables` holds the xorbs this uploader may build on. One that it may not use and one that isn't there
    answer alike.

    Raises:
        InvalidXet: at the first thing that doesn't hold.
    """
    if not (count_chunks(claim.terms) <= MAX_FILE_CHUNKS):
        raise InvalidXet(f"A file has at most {MAX_FILE_CHUNKS} chunks.")
    for term, proof in zip(claim.terms, claim.proofs, strict=True):
        _check_term(term, proof, tables.get(term.xorb))
    nodes = [node for term in claim.terms for node in tables[term.xorb].nodes(term.start, term.end)]
    if file_hash(nodes) != claim.digest:
        raise InvalidXet("The terms of a file do not hash to its name.")
    if not nodes and claim.digest != ZERO:
        raise InvalidXet("A file without terms is the empty file.")
    return sum(term.length for term in claim.terms)


def count_chunks(terms: Iterable[Term]) -> int:
    """Count the chunks that terms span; one that runs backwards counts nothing, rather than hide others."""
    return sum(max(0, term.end - term.start) for term in terms)


def _check_term(term: Term, proof: Digest, table: ChunkTable | None) -> None:
    if table is None:
        raise InvalidXet("A file is built on a xorb that was not uploaded to this bucket.")
    if not (0 <= term.start < term.end <= len(table)):
        raise InvalidXet(f"Chunks {term.start} to {term.end} lie outside a xorb of {len(table)}.")
    if table.length(term.start, term.end) != term.length:
        raise InvalidXet("A term's length is not that of its chunks.")
    if term_hash(table.raw_digests(term.start, term.end)) != proof:
        raise InvalidXet("A term's verification hash does not match its chunks.")
