"""Contents that overlap in every way, and buckets of two people to keep them in, with a model of what they come to."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from sqlmodel import Session

from storage import quota_meter as meter
from storage.database import writing
from storage.local import claims, contents, ingest
from storage.local.adoption import Add, Borrow, Operation, Refusal, Remove, apply_each
from storage.local.buckets import LocalBuckets
from storage.local.claims import Claimed
from storage.local.contents import EMPTY
from storage.paths import BucketName
from storage.quota_limits import ByteLimits
from storage.quota_tally import Usage
from storage.site import Site
from storage.xet.hashes import Digest, to_text
from storage.xet.shards import Term
from storage.xet.tables import ChunkTable
from tests.storage.xet.builders import noise, xorb

BUCKETS = {"ada-1": "ada", "ada-2": "ada", "bob-1": "bob"}
"""Every bucket that may be there, with its owner."""

RUNS = (
    [("x", 0, 6)],
    [("x", 0, 3)],
    [("x", 2, 5)],
    [("x", 1, 2), ("x", 1, 2), ("y", 0, 1)],
    [("y", 0, 4)],
    [("y", 3, 4), ("x", 5, 6)],
    [("x", 4, 6), ("x", 0, 2)],
)
"""The chunks of each content, as runs in two xorbs."""


class World:
    """A store with the contents in it; `files` is the model: what lies where, by bucket and path."""

    def __init__(self, site: Site, session: Session) -> None:
        self.store = LocalBuckets(session, site.blobs, clock=site.clock)
        self.session = session
        self.files: dict[str, dict[str, str]] = {}
        self.chunks: dict[str, set[tuple[str, int]]] = {EMPTY: set()}
        self.sizes: dict[str, int] = {EMPTY: 0}
        self.tables = {name: self.keep(site, name, count) for name, count in (("x", 6), ("y", 4))}
        self.digests = [EMPTY, *(self._content(site, number) for number in range(len(RUNS)))]
        for name in BUCKETS:
            self.create(name)

    def create(self, name: str) -> None:
        """Make a bucket whose writers have sent every content."""
        self.store.create(BucketName("race", name), owner=BUCKETS[name])
        self.files[name] = {}
        bucket_id = self.store.id_of(BucketName("race", name))
        claims.add(self.session, bucket_id, Claimed.CONTENT, self.digests[1:])

    def delete(self, name: str) -> None:
        self.store.delete(BucketName("race", name))
        del self.files[name]

    def batch(self, name: str, operations: list[Operation], limits: ByteLimits = ByteLimits()) -> list[Refusal]:
        """Apply a batch as the Hub's call does, to the store and to the model."""
        where = BucketName("race", name)
        refused = apply_each(self.store, where, operations, may_read=lambda _: True, limits_of=lambda _owner: limits)
        self.files[name] = {file.path: file.digest for file in self.store.list(where)}
        return refused

    def usage(self, *names: str) -> Usage:
        """Say what the files of some buckets come to, by the model."""
        digests = [digest for name in names for digest in self.files.get(name, {}).values()]
        chunks = set().union(*(self.chunks[digest] for digest in digests))
        stored = sum(self.tables[xorb].length(index, index + 1) for xorb, index in chunks)
        return Usage(sum(self.sizes[digest] for digest in digests), stored, len(digests))

    def metered(self) -> dict[str, Usage]:
        """Say what the meters of everybody and everything read."""
        people = {owner: meter.owner_usage(self.session, owner) for owner in set(BUCKETS.values())}
        ids = {name: self.store.id_of(BucketName("race", name)) for name in self.files}
        return people | {name: meter.bucket_usage(self.session, number) for name, number in ids.items()}

    def modelled(self) -> dict[str, Usage]:
        """Say what they should read."""
        people = {owner: self.usage(*(n for n, o in BUCKETS.items() if o == owner)) for owner in BUCKETS.values()}
        return people | {name: self.usage(name) for name in self.files}

    def keep(self, site: Site, name: str, count: int) -> ChunkTable:
        """Store one of the two xorbs, as an upload does."""
        pieces = [noise(8192 + 1000 * index, seed=hash_of(name) + index) for index in range(count)]
        raw, table, digest = xorb(pieces)
        ingest.check_xorb(BytesIO(raw), digest)
        with site.blobs.incoming() as file:
            file.write(raw)
            file.flush()
            ingest.xorbs.keep(self.session, site.blobs, file, table, digest, now=site.clock())
        return table

    def _content(self, site: Site, number: int) -> str:
        runs = [(self.tables[name], name, start, end) for name, start, end in RUNS[number]]
        terms = [Term(table.xorb_hash(), start, end, table.length(start, end)) for table, _, start, end in runs]
        digest, size = Digest(bytes([number + 1]) * 32), sum(term.length for term in terms)
        made = contents.verified(digest, size, terms, [])
        contents.register(self.session, [made], now=site.clock())
        self.sizes[to_text(digest)] = size
        self.chunks[to_text(digest)] = {(name, i) for _, name, start, end in runs for i in range(start, end)}
        return to_text(digest)


def hash_of(name: str) -> int:
    return ord(name) * 100


@contextmanager
def passing_world(site: Site) -> Iterator[World]:
    """A world that is gone at the end of the block."""
    with writing(site.engine) as session:
        yield World(site, session)
        session.rollback()


def add(path: str, digest: str) -> Add:
    return Add(path, digest, 0, None)


def borrow(path: str, digest: str, source: str) -> Borrow:
    return Borrow(path, digest, BucketName("race", source), None)


def remove(path: str) -> Remove:
    return Remove(path)
