"""Put things into a store step by step, as an upload does."""

from io import BytesIO
from pathlib import Path

from storage.buckets import Delete, Put
from storage.database import reading, writing
from storage.local import claims
from storage.local.adoption import Add, apply_each
from storage.local.buckets import LocalBuckets
from storage.local.claims import Claimed
from storage.local.ingest import check_shard, check_xorb, keep_xorb, register_shard
from storage.local.reach import Reach
from storage.paths import BucketName
from storage.quota_limits import ByteLimits
from storage.site import Site
from storage.xet.hashes import to_text
from storage.xet.shards import serialise
from tests.storage.xet.builders import claim, xorb

NAME = BucketName("race", "tiny-one")


def make_bucket(site: Site, name: BucketName = NAME, *, owner: str = "alice", private: bool = False) -> None:
    with writing(site.engine) as session:
        LocalBuckets(session, site.blobs, clock=site.clock).create(name, owner=owner, private=private)


def send_xorb(site: Site, pieces: list[bytes]) -> str:
    """Send a xorb to the bucket; return its name."""
    raw, _, name = xorb(pieces)
    with writing(site.engine) as session, site.blobs.incoming() as file:
        file.write(raw)
        bucket_id = LocalBuckets(session, site.blobs).id_of(NAME)
        table = check_xorb(file, name)
        keep_xorb(session, site.blobs, file, table, name, bucket_id=bucket_id, now=site.clock())
    return to_text(name)


def send_shard(site: Site, pieces: list[bytes]) -> str:
    """Register the file that one xorb makes; return its hash."""
    claimed = claim(xorb(pieces)[1])
    with writing(site.engine) as session:
        bucket_id = LocalBuckets(session, site.blobs).id_of(NAME)
        reach = Reach(session, bucket_id, "alice")
        verified = check_shard(BytesIO(serialise([claimed])), reach).contents
        register_shard(session, verified, bucket_id=bucket_id, now=site.clock())
    return to_text(claimed.digest)


def add_file(site: Site, path: str, digest: str) -> bool:
    """Put a registered content at a path; tell whether that was allowed."""
    with writing(site.engine) as session:
        store = LocalBuckets(session, site.blobs, clock=site.clock)
        return not apply_each(
            store, NAME, [Add(path, digest, 0, None)], may_read=lambda _: False, limits_of=lambda _: ByteLimits()
        )


def upload(site: Site, path: str, pieces: list[bytes]) -> str:
    send_xorb(site, pieces)
    digest = send_shard(site, pieces)
    assert add_file(site, path, digest)
    return digest


def write(site: Site, path: str, data: bytes) -> None:
    """Write a file as the server does."""
    with writing(site.engine) as session:
        LocalBuckets(session, site.blobs, clock=site.clock).apply(NAME, [Put(path, data)])


def read(site: Site, path: str) -> bytes:
    with reading(site.engine) as session:
        return LocalBuckets(session, site.blobs).read(NAME, path)


def delete(site: Site, path: str) -> None:
    with writing(site.engine) as session:
        LocalBuckets(session, site.blobs, clock=site.clock).apply(NAME, [Delete(path)])


def holds_xorb(site: Site, name: str) -> bool:
    """Tell whether the bucket's writers may still rely on a xorb."""
    with reading(site.engine) as session:
        bucket_id = LocalBuckets(session, site.blobs).id_of(NAME)
        return bool(claims.held(session, bucket_id, Claimed.XORB, {name}))


def xorb_files(site: Site) -> list[Path]:
    return sorted(path for path in (site.blobs.folder / "xorbs").rglob("*") if path.is_file())
