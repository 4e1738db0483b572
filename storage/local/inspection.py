"""Look at one record of the store and say what is wrong with it, without believing anything but bytes."""

import io
import struct
from functools import lru_cache

from sqlmodel import Session

from storage.errors import Corrupt
from storage.local import quarantine
from storage.local.blobs import Blobs
from storage.local.rows import ContentRow, XorbRow
from storage.xet.errors import InvalidXet
from storage.xet.files import verify_content
from storage.xet.hashes import Digest, from_text, to_text
from storage.xet.shards import Term
from storage.xet.tables import ChunkTable, parse_table
from storage.xet.terms import parse_terms
from storage.xet.xorbs import verify_xorb

_TABLES_KEPT = 64  # of at most 320 KB each


def xorb_fault(blobs: Blobs, row: XorbRow) -> str | None:
    """Decode a xorb chunk by chunk; say what is wrong with it or its record.

    Raises:
        OSError: its file could not be read now, which says nothing about its bytes.
    """
    try:
        with blobs.open(row.digest) as file:
            table = verify_xorb(file, from_text(row.digest))
            size = file.seek(0, io.SEEK_END)
    except (InvalidXet, Corrupt) as error:
        return error.message
    if (size, table.stored_bytes, table.size_bytes) != (row.size, row.size, row.unpacked):
        return "Its length is not the recorded one."
    return None if table.to_bytes() == row.chunks else "Its table of chunks is not that of its bytes."


def content_fault(session: Session, row: ContentRow) -> str | None:
    """Compute a file's hash anew from its terms; say what is wrong with its record."""

    @lru_cache(maxsize=_TABLES_KEPT)
    def table_of(xorb: Digest) -> ChunkTable:
        found = session.get(XorbRow, to_text(xorb), populate_existing=True)
        if found is None:
            raise InvalidXet(f"It is built on the xorb {to_text(xorb)}, which is not stored.")
        session.expunge(found)
        return parse_table(found.chunks)

    try:
        verify_content(from_text(row.digest), row.size, _terms(row), table_of)
    except InvalidXet as error:
        return error.message
    return None


def missing_references(session: Session, row: ContentRow) -> set[str]:
    """Return the xorbs that an undamaged content is built on without a note of it: a sweep would take them."""
    return {to_text(term.xorb) for term in _terms(row)} - quarantine.references(session, row.digest)


def _terms(row: ContentRow) -> list[Term]:
    try:
        return parse_terms(row.terms)
    except struct.error as error:
        raise InvalidXet("Its list of terms is cut short.") from error
