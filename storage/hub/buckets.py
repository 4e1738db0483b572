"""The BucketStore at a Hub: for a race whose agents use the Hub itself.

What the Hub can't give, and what stands in for it:

- Nothing waits for the session. A batch is sent when `apply` is called, so it is visible before the entry point
  commits and stays if that fails. Callers write their rows after `apply` has returned: a row without a file can't
  be, a file without a row is what `paddock reindex` heals, for the files are the record.
- A batch is checked as a whole before anything is sent, then sent in calls of 1,000 lines (the client's own size);
  copies go before additions, additions before deletions. Should a later call fail, or another writer come between
  check and call, what was done stays done and `HalfApplied` or `HubUnavailable` says so. Repeating it is safe.
- Twins of a name are refused within a batch, and a file inside a file. Twins of what lies there already, and a file
  in a folder's place, only the Hub itself could refuse.
- Bytes are checked by fetching the whole file, whatever range of it is wanted.
- The Hub doesn't say who made a bucket: it belongs to whom its handshake file names, and to nobody without one.
- A content type is the Hub's own guess by the name and isn't told again.
"""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from huggingface_hub import BucketFile, HfApi
from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # documented

from storage.buckets import (
    HANDSHAKE,
    SYSTEM,
    Bucket,
    BucketNotFound,
    Change,
    FileNotInBucket,
    Put,
    StoredFile,
)
from storage.challenge import Storage
from storage.errors import Invalid, TooLarge
from storage.hub import fetching
from storage.hub.failing import asking
from storage.hub.planning import Plan, lookups, plan
from storage.paths import BucketName, check_path

_MAX_HANDSHAKE_BYTES = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class HubTokenMissing(Invalid):
    """The environment holds no token for the Hub."""

    code = "HUB_TOKEN_MISSING"


def connect(storage: Storage, *, own: frozenset[BucketName]) -> "HubBuckets":
    """Build the store that a challenge file describes; `own` are the server's own buckets.

    Raises:
        HubTokenMissing: the variable that is to hold the token is empty.
    """
    token = os.environ.get(storage.token_variable)
    if not token:
        raise HubTokenMissing(
            f"The race keeps its buckets at {storage.address}; {storage.token_variable} must hold a token."
        )
    return HubBuckets(HfApi(endpoint=storage.address, token=token), own=own)


class HubBuckets:
    """Buckets at the Hub that `api` speaks to, as the holder of its token may see and write them."""

    def __init__(self, api: HfApi, *, own: frozenset[BucketName] = frozenset()) -> None:
        """Use a client; `own` are the buckets that the server alone writes."""
        self._api = api
        self._own = own
        disable_progress_bars()

    def create(self, name: BucketName, *, owner: str, private: bool = False) -> Bucket:
        """Make a bucket, and for a person write the handshake that says whose it is.

        Raises:
            BucketExists: it is there already.
        """
        with asking(name):
            self._api.create_bucket(str(name), private=private)
        if owner != SYSTEM:
            self.apply(name, [Put(HANDSHAKE, f"{owner}\n".encode())])
        return self.get(name)

    def find(self, name: BucketName) -> Bucket | None:
        """Return the bucket, or None."""
        try:
            with asking(name):
                info = self._api.bucket_info(str(name))
        except BucketNotFound:
            return None
        return Bucket(name, self._owner(name), info.private, info.created_at)

    def get(self, name: BucketName) -> Bucket:
        """Return the bucket.

        Raises:
            BucketNotFound: there is none.
        """
        bucket = self.find(name)
        if bucket is None:
            raise BucketNotFound(f"There is no bucket {name}.")
        return bucket

    def stat(self, name: BucketName, path: str) -> StoredFile | None:
        """Return the file at `path`, or None."""
        try:
            return next(iter(self._stat_all(name, [path])), None)
        except BucketNotFound:
            return None

    def list(
        self, name: BucketName, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> list[StoredFile]:
        """List files at or below the folder `prefix` by path; every page costs the Hub's whole listing of it."""
        folder = prefix.rstrip("/")
        with asking(name):
            entries = list(self._api.list_bucket_tree(str(name), prefix=folder or None, recursive=True))
        files = [_stored(entry) for entry in entries if isinstance(entry, BucketFile)]
        inside = [file for file in files if not folder or file.path == folder or file.path.startswith(f"{folder}/")]
        return sorted((file for file in inside if file.path > after), key=lambda file: file.path)[:limit]

    def open(self, name: BucketName, path: str, *, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """Yield the bytes `start` to `end` (exclusive) of a file, all of which is fetched and checked first.

        Raises:
            FileNotInBucket: no such file.
            Corrupt: the Hub sent other bytes than it lists.
        """
        file = self._file(name, path)
        stop = file.size if end is None else min(end, file.size)
        return fetching.stream(fetching.fetch(self._api, name, file), start, stop)

    def read(self, name: BucketName, path: str, *, max_bytes: int = 1_000_000) -> bytes:
        """Return a whole small file.

        Raises:
            FileNotInBucket: no such file.
            TooLarge: the file has more than `max_bytes`.
        """
        file = self._file(name, path)
        if not (file.size <= max_bytes):
            raise TooLarge(f"{path} has more than the {max_bytes} bytes that are read at once.")
        return b"".join(fetching.stream(fetching.fetch(self._api, name, file), 0, file.size))

    def apply(self, name: BucketName, changes: Sequence[Change]) -> None:
        """Make all changes, in the sense that the module says.

        Raises:
            InvalidPath, NameTaken, FileNotInBucket, BucketNotFound: nothing was sent.
            ChangeRefused: the Hub made none of them.
            HalfApplied, HubUnavailable: some may have been made; doing it again is safe.
        """
        for change in changes:
            check_path(change.path, dot_led=True)
        wanted = lookups(name, changes)
        there = {
            (bucket, file.path): file.digest
            for bucket in wanted
            for file in self._stat_all(bucket, sorted(wanted[bucket]))
        }
        self._send(name, plan(name, changes, there))

    def _send(self, name: BucketName, made: Plan) -> None:
        """Send copies alone and first; the client cuts calls of more than 1,000 lines itself."""
        if made.copies:
            own_first = sorted(made.copies.items(), key=lambda pair: pair[1].source != name)
            copies = [("bucket", str(held.source), held.digest, path) for path, held in own_first]
            with asking(name, changes=len(copies)):
                self._api.batch_bucket_files(str(name), copy=copies)
        if made.adds or made.deletes:
            adds: list[tuple[str | Path | bytes, str]] = [(put.content, path) for path, put in made.adds.items()]
            with asking(name, changes=len(made.copies) + len(adds) + len(made.deletes)):
                self._api.batch_bucket_files(str(name), add=adds, delete=made.deletes)

    def _owner(self, name: BucketName) -> str:
        """Say who owns a bucket: the server its own, a person what their handshake names, else nobody (`""`)."""
        if name in self._own:
            return SYSTEM
        file = self.stat(name, HANDSHAKE)
        if file is None or not (file.size <= _MAX_HANDSHAKE_BYTES):
            return ""
        said = self.read(name, HANDSHAKE).decode("utf-8", "replace").strip()
        return "" if said == SYSTEM else said

    def _file(self, name: BucketName, path: str) -> StoredFile:
        file = self.stat(name, path)
        if file is None:
            raise FileNotInBucket(f"There is no file {path!r:.200} in the bucket {name}.")
        return file

    def _stat_all(self, name: BucketName, paths: Sequence[str]) -> Sequence[StoredFile]:
        """Return those of `paths` that are files; asks the Hub even about none, which tells whether the bucket is."""
        with asking(name):
            if not paths:
                self._api.bucket_info(str(name))
            return [_stored(file) for file in self._api.get_bucket_paths_info(str(name), paths)]


def _stored(file: BucketFile) -> StoredFile:
    uploaded_at = file.uploaded_at or file.mtime or _EPOCH
    return StoredFile(file.path, file.xet_hash, file.size, file.mtime or uploaded_at, uploaded_at)
