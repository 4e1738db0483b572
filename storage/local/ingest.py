"""Let clients' xorbs and shards in, after everything they say was checked."""

import io
from collections.abc import Iterator
from datetime import datetime
from typing import BinaryIO

from sqlmodel import Session

from storage.local import claims, contents, xorbs
from storage.local.blobs import Blobs
from storage.local.claims import Claimed
from storage.local.contents import Content
from storage.xet.errors import InvalidXet
from storage.xet.files import MAX_FILE_CHUNKS, count_chunks, verify_file
from storage.xet.hashes import ZERO, Digest, from_text, to_text
from storage.xet.shards import FileClaim, read_files
from storage.xet.tables import ChunkTable
from storage.xet.xorbs import verify_xorb

MAX_SHARD_BYTES = 64 * 1024 * 1024


def check_xorb(file: BinaryIO, digest: Digest) -> ChunkTable:
    """Verify the xorb in a temporary file; needs no database.

    Raises:
        InvalidXet: nothing of it may be kept.
    """
    file.seek(0)
    return verify_xorb(file, digest)


def keep_xorb(
    session: Session,
    files: Blobs,
    file: BinaryIO,
    table: ChunkTable,
    digest: Digest,
    *,
    bucket_id: int,
    now: datetime,
) -> bool:
    """Store a checked xorb for a bucket; tell whether it is new to this bucket, whoever else has it."""
    xorbs.keep(session, files, file, table, digest, now=now)
    return claims.add(session, bucket_id, Claimed.XORB, [to_text(digest)]) > 0


def check_shard(session: Session, file: BinaryIO, *, bucket_id: int) -> list[Content]:
    """Verify every file of a shard against xorbs that this bucket's writers uploaded; writes nothing.

    Raises:
        InvalidXet: nothing of the shard may be registered.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    return list(_verified(read_files(file, size), _Tables(session, bucket_id)))


def register_shard(session: Session, verified: list[Content], *, bucket_id: int, now: datetime) -> bool:
    """Record a shard's checked files for a bucket; tell whether any is new to this bucket."""
    contents.register(session, verified, now=now)
    xorbs.mention(session, {to_text(term.xorb) for content in verified for term in content.terms}, now=now)
    return claims.add(session, bucket_id, Claimed.CONTENT, [to_text(content.digest) for content in verified]) > 0


def _verified(shard: Iterator[FileClaim], tables: "_Tables") -> Iterator[Content]:
    chunks = 0
    for claim in shard:
        chunks += count_chunks(claim.terms)
        if not (chunks <= MAX_FILE_CHUNKS):
            raise InvalidXet(f"A shard's files span at most {MAX_FILE_CHUNKS} chunks together.")
        tables.fetch({term.xorb for term in claim.terms})
        size = verify_file(claim, tables.known)
        if claim.digest != ZERO:
            yield Content(claim.digest, size, claim.terms)


class _Tables:
    """Tables of the xorbs that one bucket may build on, fetched when a file first names them."""

    def __init__(self, session: Session, bucket_id: int) -> None:
        self.known: dict[Digest, ChunkTable] = {}
        self._session = session
        self._bucket_id = bucket_id

    def fetch(self, digests: set[Digest]) -> None:
        missing = {to_text(digest) for digest in digests - self.known.keys()}
        if missing:
            usable = claims.held(self._session, self._bucket_id, Claimed.XORB, missing)
            self.known |= xorbs.tables(self._session, {from_text(name) for name in usable})
