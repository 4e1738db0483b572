"""The embedded BucketStore: rows in the session's database, xorbs in a folder."""

import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import delete, func
from sqlmodel import Session, col, select

from storage import quota_meter
from storage.buckets import Bucket, BucketExists, BucketNotFound, Change, FileNotInBucket, StoredFile
from storage.clock import Clock, utc_now
from storage.database import hold
from storage.errors import TooLarge
from storage.local import changing, contents, listing
from storage.local.blobs import Blobs
from storage.local.contents import Readable
from storage.local.listing import Folder
from storage.local.rows import BucketRow, ClaimRow, FileRow
from storage.paths import BucketName, parse_bucket


class LocalBuckets:
    """Buckets bound to an open session; nothing is visible to others before its owner commits."""

    def __init__(self, session: Session, blobs: Blobs, *, clock: Clock = utc_now) -> None:
        """Bind to a session and to the folder of xorbs."""
        self.session = session
        self.blobs = blobs
        self._clock = clock

    def create(self, name: BucketName, *, owner: str, private: bool = False) -> Bucket:
        """Make a bucket.

        Raises:
            BucketExists: it is there already.
        """
        self.reserve(name)
        if self._row(name) is not None:
            raise BucketExists(f"The bucket {name} exists already.")
        row = BucketRow(id=secrets.randbits(31), name=str(name), owner=owner, private=private, created_at=self._clock())
        self.session.add(row)
        self.session.flush()
        return _bucket(row)

    def reserve(self, name: BucketName) -> None:
        """Keep others from taking a name until the transaction ends: what is found of it meanwhile stays true."""
        hold(self.session, [f"name:{name}"])

    def find(self, name: BucketName) -> Bucket | None:
        """Return the bucket, or None."""
        row = self._row(name)
        return None if row is None else _bucket(row)

    def get(self, name: BucketName) -> Bucket:
        """Return the bucket.

        Raises:
            BucketNotFound: there is none.
        """
        return _bucket(self._existing(name))

    def id_of(self, name: BucketName) -> int:
        """Return the number that stands for the bucket through every rename, and never for another.

        Raises:
            BucketNotFound: there is none.
        """
        return self._existing(name).id

    def name_of(self, bucket_id: int) -> BucketName | None:
        """Return the bucket's name now, or None where it was deleted."""
        row = self.session.get(BucketRow, bucket_id)
        return None if row is None else parse_bucket(row.name)

    def in_namespace(self, namespace: str) -> list[Bucket]:
        """List the buckets of a namespace by name, private ones too."""
        rows = self.session.exec(
            select(BucketRow)
            .where(col(BucketRow.name) > f"{namespace}/", col(BucketRow.name) < f"{namespace}0")
            .order_by(BucketRow.name)
        )
        return [_bucket(row) for row in rows]

    def count_of(self, owner: str) -> int:
        """Count the buckets that somebody owns."""
        return self.session.exec(select(func.count()).where(BucketRow.owner == owner)).one()

    def rename(self, name: BucketName, to: BucketName) -> Bucket:
        """Give a bucket another name; its files and what its writers proved stay with it.

        Raises:
            BucketNotFound: there is none.
            BucketExists: the new name is taken.
        """
        self.reserve(to)
        row = self._locked(name)
        if self._row(to) is not None:
            raise BucketExists(f"The bucket {to} exists already.")
        row.name = str(to)
        self.session.add(row)
        self.session.flush()
        return _bucket(row)

    def set_private(self, name: BucketName, private: bool) -> None:
        """Hide a bucket from everybody but its owner, or show it.

        Raises:
            BucketNotFound: there is none.
        """
        row = self._locked(name)
        row.private = private
        self.session.add(row)
        self.session.flush()

    def delete(self, name: BucketName) -> None:
        """Remove a bucket with its files; stored bytes stay for others that hold them.

        Raises:
            BucketNotFound: there is none.
        """
        row = self._locked(name)
        quota_meter.close(self.session, row.id)
        for table in (FileRow, ClaimRow):
            self.session.execute(delete(table).where(col(table.bucket_id) == row.id))
        self.session.delete(row)
        self.session.flush()

    def usage(self, names: Sequence[BucketName]) -> dict[BucketName, tuple[int, int]]:
        """Return each bucket's `(size in bytes, number of files)`."""
        totals: dict[BucketName, tuple[int, int]] = dict.fromkeys(names, (0, 0))
        query = (
            select(BucketRow.name, func.sum(FileRow.size), func.count())
            .join(FileRow, col(FileRow.bucket_id) == col(BucketRow.id))
            .where(col(BucketRow.name).in_([str(name) for name in names]))
            .group_by(BucketRow.name)
        )
        # PostgreSQL adds bigints up to a Decimal.
        totals.update({parse_bucket(name): (int(size), count) for name, size, count in self.session.exec(query)})
        return totals

    def stat(self, name: BucketName, path: str) -> StoredFile | None:
        """Return the file at `path`, or None."""
        return next(iter(self.stat_all(name, [path])), None)

    def stat_all(self, name: BucketName, paths: Sequence[str]) -> list[StoredFile]:
        """Return those files of `paths` that are there, by path."""
        row = self._row(name)
        return [] if row is None else listing.files_at(self.session, row.id, paths)

    def list(
        self, name: BucketName, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> list[StoredFile]:
        """List files at or below the folder `prefix` by path; `after` (exclusive) and `limit` make pages."""
        return listing.files_below(self.session, self._existing(name).id, prefix, after=after, limit=limit)

    def entries(
        self, name: BucketName, prefix: str = "", *, after: str = "", limit: int = 1000
    ) -> Sequence[StoredFile | Folder]:
        """List the files and folders directly in `prefix`; `after` is `cursor_after` the last entry seen."""
        return listing.entries_in(self.session, self._existing(name).id, prefix, after=after, limit=limit)

    def open(self, name: BucketName, path: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes `start` to `end` (exclusive) of a file, each piece verified before it is handed out.

        All rows are read before this returns: the session may close while the bytes flow.

        Raises:
            FileNotInBucket: no such file.
            Corrupt: stored bytes don't match their digest; nothing wrong was yielded.
        """
        content = self.readable(name, path)
        stop = content.size if end is None else min(end, content.size)
        return contents.stream(self.blobs, content, start, stop)

    def readable(self, name: BucketName, path: str) -> Readable:
        """Load what reading a file needs, without its bytes.

        Raises:
            FileNotInBucket: no such file.
        """
        return contents.load(self.session, self._file(name, path).digest)

    def read(self, name: BucketName, path: str, *, max_bytes: int = 1_000_000) -> bytes:
        """Return a whole small file.

        Raises:
            FileNotInBucket: no such file.
            TooLarge: the file has more than `max_bytes`.
        """
        if not (self._file(name, path).size <= max_bytes):
            raise TooLarge(f"{path} has more than the {max_bytes} bytes that are read at once.")
        return b"".join(self.open(name, path))

    def apply(self, name: BucketName, changes: Sequence[Change]) -> None:
        """Make all changes in order or, if any raises, none (the caller rolls its transaction back).

        Raises:
            InvalidPath, FileNotInBucket, BucketNotFound: named by the first change that can't be made.
        """
        changing.apply(self, name, changes, now=self.now())

    def now(self) -> datetime:
        """Tell the time that writes are stamped with."""
        return self._clock()

    def _file(self, name: BucketName, path: str) -> StoredFile:
        file = self.stat(name, path)
        if file is None:
            raise FileNotInBucket(f"There is no file {path!r:.200} in the bucket {name}.")
        return file

    def _existing(self, name: BucketName) -> BucketRow:
        row = self._row(name)
        if row is None:
            raise BucketNotFound(f"There is no bucket {name}.")
        return row

    def _locked(self, name: BucketName) -> BucketRow:
        """Return the bucket's row as it is once nobody else changes it, and until the transaction ends."""
        asked = select(BucketRow).where(BucketRow.name == str(name)).with_for_update()
        row = self.session.exec(asked.execution_options(populate_existing=True)).first()
        if row is None:
            raise BucketNotFound(f"There is no bucket {name}.")
        return row

    def _row(self, name: BucketName) -> BucketRow | None:
        return self.session.exec(select(BucketRow).where(BucketRow.name == str(name))).first()


def _bucket(row: BucketRow) -> Bucket:
    return Bucket(name=parse_bucket(row.name), owner=row.owner, private=row.private, created_at=row.created_at)
