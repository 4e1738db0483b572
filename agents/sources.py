"""Records in scratch buckets, read whole and bounded."""

from dataclasses import dataclass

from sqlmodel import Session

from storage.errors import NotFound, TooLarge
from storage.frontmatter import Document, parse_bytes
from storage.paths import Source
from storage.site import Site

MAX_BYTES = 262_144
"""Largest message, result, note or bio, in bytes."""


class SourceNotFound(NotFound):
    """The scratch bucket holds no such file."""

    code = "SOURCE_NOT_FOUND"


class RecordTooLarge(TooLarge):
    """A record is larger than a record may be."""

    code = "SYNC_TOO_LARGE"


@dataclass(frozen=True)
class StoredRecord:
    """A record as it lies in a bucket; `digest` is its Xet hash."""

    document: Document
    digest: str


def read_record(site: Site, session: Session, where: Source) -> StoredRecord:
    """Read the record at `where`; whether the caller may is settled before.

    Raises:
        SourceNotFound: no such file.
        RecordTooLarge: it is larger than a record may be.
        InvalidFrontmatter: it is no record.
    """
    buckets = site.buckets(session)
    stored = buckets.stat(where.bucket, where.path)
    if stored is None:
        raise SourceNotFound(f"There is no file {where.path} in {where.bucket}.", hint=f"hf buckets cp FILE {where}")
    if not (stored.size <= MAX_BYTES):
        raise RecordTooLarge(f"The file has {stored.size} bytes; a record has at most {MAX_BYTES}.")
    return StoredRecord(
        parse_bytes(buckets.read(where.bucket, where.path, max_bytes=MAX_BYTES)),
        stored.digest,
    )
