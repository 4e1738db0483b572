"""The BucketStore contract: named buckets of whole files, on any backend.

A store is bound to an open database session. `apply` is atomic for its whole batch within that
session's transaction, over several buckets too: nothing is visible to anyone before the entry point commits.
(`storage.hub.buckets` says how much of that a Hub can hold.)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol

from storage.errors import Conflict, NotFound
from storage.paths import BucketName

SYSTEM = "system"
"""Owner of the central and the audit bucket; no person can hold this name."""


HANDSHAKE = ".bucket-sync-handshake"
"""A file in which the owner of a scratch bucket names themselves; nobody else can write it."""


class BucketExists(Conflict):
    """A bucket of that name is there already."""

    code = "BUCKET_EXISTS"


class NameTaken(Conflict):
    """A file there has the same name but for case, or is a folder where a file is to be, or the other way round."""

    code = "NAME_TAKEN"


class BucketNotFound(NotFound):
    """There is no such bucket, or the caller may not know of it."""

    code = "NOT_FOUND"


class FileNotInBucket(NotFound):
    """The bucket holds no file of that path."""

    code = "SOURCE_NOT_FOUND"


@dataclass(frozen=True)
class Bucket:
    """A bucket as the record knows it."""

    name: BucketName
    owner: str
    private: bool
    created_at: datetime


@dataclass(frozen=True)
class StoredFile:
    """A file in a bucket. `digest` is its Xet hash (64 hex); `size` is in bytes."""

    path: str
    digest: str
    size: int
    mtime: datetime
    uploaded_at: datetime
    content_type: str | None = None


@dataclass(frozen=True)
class Put:
    """Write `content` (bytes, or the file at a path) at `path`, replacing what was there."""

    path: str
    content: bytes | Path
    content_type: str | None = None


@dataclass(frozen=True)
class Copy:
    """Make `path` hold what `source_path` in `source` holds now. No data moves."""

    path: str
    source: BucketName
    source_path: str


@dataclass(frozen=True)
class Delete:
    """Remove `path`; it must be there."""

    path: str


Change = Put | Copy | Delete


class BucketStore(Protocol):
    """What every backend does alike; one behavioural suite runs against all of them."""

    def create(self, name: BucketName, *, owner: str, private: bool = False) -> Bucket:
        """Make a bucket.

        Raises:
            Conflict: it is there already.
        """

    def find(self, name: BucketName) -> Bucket | None:
        """Return the bucket, or None."""

    def get(self, name: BucketName) -> Bucket:
        """Return the bucket.

        Raises:
            BucketNotFound: there is none.
        """

    def stat(self, name: BucketName, path: str) -> StoredFile | None:
        """Return the file at `path`, or None."""

    def list(
        self, name: BucketName, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> list[StoredFile]:
        """List files at or below the folder `prefix` by path; `after` (exclusive) and `limit` make pages."""

    def open(self, name: BucketName, path: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes `start` to `end` (exclusive) of a file, each piece verified before it is handed out.

        Raises:
            FileNotInBucket: no such file.
            Corrupt: stored bytes don't match their digest; nothing wrong was yielded.
        """

    def read(self, name: BucketName, path: str, *, max_bytes: int = 1_000_000) -> bytes:
        """Return a whole small file.

        Raises:
            FileNotInBucket: no such file.
            TooLarge: the file has more than `max_bytes`.
        """

    def apply(self, name: BucketName, changes: Sequence[Change]) -> None:
        """Make all changes or, if any raises, none (the caller rolls its transaction back).

        Names that differ only by case or Unicode form, and a file of the name of a folder, can't lie side by side,
        unless the same batch deletes the one that is there.

        Raises:
            InvalidPath, NameTaken, FileNotInBucket, BucketNotFound: named by the first change that can't be made.
        """
