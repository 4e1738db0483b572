"""Let clients' xorbs and shards in, after everything they say was checked."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from sqlmodel import Session

from storage.local import claims, contents, recorded, xorbs
from storage.local.blobs import Blobs
from storage.local.claims import Claimed
from storage.local.contents import Content
from storage.local.effort import Effort, TooMuch
from storage.local.foundation import Foundation
from storage.local.reach import Reach
from storage.xet.errors import InvalidXet
from storage.xet.files import verify_file
from storage.xet.hashes import ZERO, Digest, to_text
from storage.xet.shards import FileClaim, read_files
from storage.xet.tables import ChunkTable
from storage.xet.xorbs import verify_xorb

MAX_SHARD_BYTES = 64 * 1024 * 1024
MAX_SHARD_FILES = 1 << 14
_FOREIGN = (
    "The shard is built on chunks that are not this uploader's to use, or is wrong or too much to verify at once: send "
    "the chunks, and register its files in several."
)


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


@dataclass(frozen=True)
class Checked:
    """The verified files of a shard; unless it `is_whole`, the rest waits until these are registered."""

    contents: list[Content]
    is_whole: bool = True


def check_shard(file: BinaryIO, reach: Reach) -> Checked:
    """Verify the files of a shard against what its sender may build on, as many as may be at once; writes nothing.

    Raises:
        InvalidXet: nothing of the shard may be registered.
    """
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    effort = Effort()
    foundation = Foundation(reach, effort)
    checked: list[Content] = []
    try:
        for content in _verified(read_files(file, size), foundation, effort):
            checked.append(content)  # what came before an error counts
    except InvalidXet as error:
        if isinstance(error, TooMuch) and not foundation.is_foreign and _has_news(checked, reach):
            return Checked(checked, is_whole=False)
        if not foundation.is_foreign:
            raise
        # Looking through others' files takes effort: that it ran out would tell that there are some.
        raise InvalidXet(_FOREIGN) from error
    return Checked(checked)


def register_shard(session: Session, verified: list[Content], *, bucket_id: int, now: datetime) -> bool:
    """Record a shard's checked files for a bucket; tell whether any is new to this bucket.

    Raises:
        InvalidXet: a xorb was swept since the check.
    """
    named = {xorb for content in verified for xorb in content.xorbs}
    if xorbs.mention(session, named, now=now) != len(named):
        raise InvalidXet("A xorb that the shard builds on is no longer stored; send it.")
    contents.register(session, verified, now=now)
    return claims.add(session, bucket_id, Claimed.CONTENT, [content.name for content in verified]) > 0


def _has_news(checked: list[Content], reach: Reach) -> bool:
    """Tell whether registering these gets a shard any further."""
    names = {content.name for content in checked}
    return reach.contents(names) != names


def _verified(shard: Iterator[FileClaim], foundation: Foundation, effort: Effort) -> Iterator[Content]:
    for group in recorded.grouped(_counted(shard)):
        known = recorded.find(foundation.reach, group, effort)
        for claim in group:
            yield from [known[claim.digest]] if claim.digest in known else _proved(claim, foundation, effort)


def _counted(shard: Iterator[FileClaim]) -> Iterator[FileClaim]:
    for number, claim in enumerate(shard, start=1):
        if not (number <= MAX_SHARD_FILES):
            raise InvalidXet(f"A shard has at most {MAX_SHARD_FILES} files.", hint="Register them in several.")
        yield claim


def _proved(claim: FileClaim, foundation: Foundation, effort: Effort) -> Iterator[Content]:
    """Verify a file; the empty one is recorded nowhere."""
    effort.on_file(claim)
    foundation.fetch({term.xorb for term in claim.terms})
    size = verify_file(claim, foundation.tables, may_use=foundation.may_use)
    if claim.digest != ZERO:
        yield contents.verified(claim.digest, size, claim.terms, foundation.digests(claim.terms))
