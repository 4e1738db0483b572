"""Decide what an uploader may build on: what was sent to its own buckets, and what it could read anyway.

Everything else is to look as if it weren't here. A xorb may hold chunks of many files, so what opens it is asked
for by chunk.
"""

from collections.abc import Callable, Collection, Iterator

from sqlalchemy import ColumnElement
from sqlmodel import Session, col, or_, select

from storage.buckets import Bucket
from storage.local import upserts
from storage.local.claims import Claimed
from storage.local.rows import BucketRow, ClaimRow, ContentRow, ContentXorbRow, FileRow
from storage.paths import parse_bucket
from storage.xet.hashes import from_text
from storage.xet.reconstruction import ChunkRange, join
from storage.xet.terms import TERM_BYTES, parse_terms

_CONTENTS_AT_ONCE = 50
_TERMS_PER_CONTENT = 32  # what asking for one takes beside its terms


class Reach:
    """What the writer `user` of one bucket may build on; `may_read` says which buckets' files they see."""

    def __init__(self, session: Session, bucket_id: int, user: str, *, may_read: Callable[[Bucket], bool]) -> None:
        """Look from a bucket and its writer."""
        self.session = session
        self.bucket_id = bucket_id
        self._user = user
        self._may_read = may_read
        self._readable: dict[int, bool] = {}

    def xorbs(self, names: Collection[str]) -> set[str]:
        """Return those xorbs that were sent to the writer's own buckets: all their chunks are the writer's."""
        return self._claimed((Claimed.XORB,), names)

    def contents(self, names: Collection[str]) -> set[str]:
        """Return those contents that the writer could read."""
        claimed = self._claimed((Claimed.CONTENT, Claimed.OFFERED), names)
        return claimed | self._in_files(set(names) - claimed)

    def ranges(self, xorb: str, chunks: int, *, spend: Callable[[int], None]) -> list[ChunkRange]:
        """List which of a xorb's `chunks` chunks lie in contents that the writer could read.

        `spend` is told in terms how much is about to be looked through, and may raise.
        """
        found: list[ChunkRange] = []
        for ranges in self._ranges(xorb, spend):
            found = join([*found, *ranges])
            if found == [ChunkRange(0, chunks)]:
                break
        return found

    def _ranges(self, xorb: str, spend: Callable[[int], None]) -> Iterator[list[ChunkRange]]:
        name = from_text(xorb)
        contents = self.session.exec(select(ContentXorbRow.content).where(ContentXorbRow.xorb == xorb)).all()
        for start in range(0, len(contents), _CONTENTS_AT_ONCE):
            within = self.contents(contents[start : start + _CONTENTS_AT_ONCE])
            rows = self.session.exec(select(ContentRow.terms).where(col(ContentRow.digest).in_(within))).all()
            spend(_TERMS_PER_CONTENT * _CONTENTS_AT_ONCE + sum(len(raw) // TERM_BYTES for raw in rows))
            terms = (term for raw in rows for term in parse_terms(raw))
            yield [ChunkRange(term.start, term.end) for term in terms if term.xorb == name]

    def _claimed(self, kinds: tuple[Claimed, ...], names: Collection[str]) -> set[str]:
        own: ColumnElement[bool] = col(BucketRow.id) == self.bucket_id
        if self._user:
            own = or_(own, col(BucketRow.owner) == self._user)
        found: set[str] = set()
        for some in upserts.slices(sorted(names)):
            query = (
                select(ClaimRow.digest)
                .join(BucketRow, col(BucketRow.id) == col(ClaimRow.bucket_id))
                .where(own, col(ClaimRow.kind).in_(kinds), col(ClaimRow.digest).in_(some))
            )
            found.update(self.session.exec(query))
        return found

    def _in_files(self, names: Collection[str]) -> set[str]:
        found: set[str] = set()
        for some in upserts.slices(sorted(names)):
            query = select(FileRow.digest, FileRow.bucket_id).where(col(FileRow.digest).in_(some)).distinct()
            found.update(digest for digest, bucket_id in self.session.exec(query) if self._reads(bucket_id))
        return found

    def _reads(self, bucket_id: int) -> bool:
        if bucket_id not in self._readable:
            row = self.session.get_one(BucketRow, bucket_id)
            bucket = Bucket(parse_bucket(row.name), row.owner, private=row.private, created_at=row.created_at)
            self._readable[bucket_id] = self._may_read(bucket)
        return self._readable[bucket_id]
