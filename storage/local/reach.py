"""Decide what an uploader may build on: what was sent to its own buckets, and what it could read anyway.

Everything else is to look as if it weren't here. A xorb may hold chunks of many files, so what opens it is asked
for by chunk.
"""

from collections.abc import Callable, Collection, Iterator

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Mapped
from sqlmodel import Session, col, exists, or_, select
from sqlmodel.sql.expression import SelectOfScalar

from storage.local import upserts
from storage.local.claims import Claimed
from storage.local.rows import BucketRow, ClaimRow, ContentRow, ContentXorbRow, FileRow
from storage.xet.hashes import from_text
from storage.xet.reconstruction import ChunkRange, join
from storage.xet.terms import TERM_BYTES, parse_terms

_CONTENTS_AT_ONCE = 50
_TERMS_PER_CONTENT = 32  # what asking for one takes beside its terms


class Reach:
    """What the writer `user` (`""` for anybody) of one bucket may build on."""

    def __init__(self, session: Session, bucket_id: int, user: str) -> None:
        """Look from a bucket and its writer."""
        self.session = session
        self.bucket_id = bucket_id
        self._user = user

    def xorbs(self, names: Collection[str]) -> set[str]:
        """Return those xorbs that were sent to the writer's own buckets: all their chunks are the writer's."""
        found: set[str] = set()
        for some in upserts.slices(sorted(names)):
            found.update(self.session.exec(self._claims((Claimed.XORB,)).where(col(ClaimRow.digest).in_(some))))
        return found

    def contents(self, names: Collection[str]) -> set[str]:
        """Return those contents that the writer could read."""
        found: set[str] = set()
        for some in upserts.slices(sorted(names)):
            name = col(ContentRow.digest)
            found.update(self.session.exec(select(ContentRow.digest).where(name.in_(some), self.opens(name))))
        return found

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

    def opens(self, content: Mapped[str]) -> ColumnElement[bool]:
        """Ask of a column of names whether the writer could read that content."""
        held = self._claims((Claimed.CONTENT, Claimed.OFFERED)).where(col(ClaimRow.digest) == content)
        in_files = (
            select(FileRow.path)
            .join(BucketRow, col(BucketRow.id) == col(FileRow.bucket_id))
            .where(col(FileRow.digest) == content, _is_readable(self._user))
        )
        return or_(exists(held), exists(in_files))

    def _claims(self, kinds: tuple[Claimed, ...]) -> SelectOfScalar[str]:
        own: ColumnElement[bool] = col(BucketRow.id) == self.bucket_id
        if self._user:
            own = or_(own, col(BucketRow.owner) == self._user)
        return (
            select(ClaimRow.digest)
            .join(BucketRow, col(BucketRow.id) == col(ClaimRow.bucket_id))
            .where(own, col(ClaimRow.kind).in_(kinds))
        )


def _is_readable(user: str) -> ColumnElement[bool]:
    """Ask what `web.hub.access.is_readable` asks, of rows."""
    is_public = col(BucketRow.private).is_(False)
    return or_(is_public, col(BucketRow.owner) == user) if user else is_public
