"""Measure what the dearest shards cost to verify, accepted and refused ones: seconds of CPU, goal at most 1.

    nice .venv/bin/python bench/shards.py

Xorbs are rows of random digests without bytes: verifying a shard reads no more of them.
"""

import io
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from storage.database import writing
from storage.local import claims, upserts
from storage.local.buckets import LocalBuckets
from storage.local.claims import Claimed
from storage.local.ingest import check_shard
from storage.local.reach import Reach
from storage.local.rows import XorbRow
from storage.paths import parse_bucket
from storage.settings import Settings
from storage.site import Site, open_site
from storage.xet.errors import InvalidXet
from storage.xet.hashes import Digest, file_hash_of, term_hash, to_text
from storage.xet.shards import FileClaim, Term, serialise
from storage.xet.tables import ChunkTable, TableBuilder

BUCKET, OWNER = parse_bucket("race/tiny-a1"), "ada"
Xorb = tuple[Digest, ChunkTable]


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory(prefix="shards-") as folder:
        site = open_site(Settings(data=Path(folder)))
        with writing(site.engine) as session:
            site.buckets(session).create(BUCKET, owner=OWNER)
        full, tiny = make_xorbs(site, 512, chunks=1024, length=65536), make_xorbs(site, 128, chunks=8192, length=1)
        print(f"load {os.getloadavg()[0]:.1f}")
        for name, shard in cases(full, tiny):
            seconds, answer = verify(site, shard)
            print(f"{name:<58} {len(shard) / 1e6:6.2f} MB {seconds:6.2f} s of CPU, goal <= 1: {answer}", flush=True)
        site.engine.dispose()


def cases(full: list[Xorb], tiny: list[Xorb]) -> Iterator[tuple[str, bytes]]:
    """Yield shards: the largest honest ones, such that lie in the last record, and such that never end."""
    yield "a file of 32 GiB", serialise([claim(full, 1024)])
    yield "a file of 32 GiB in terms of 16 chunks", serialise([claim(full, 16)])
    yield "a file of 32 GiB in terms of 9 chunks, misnamed", serialise([misnamed(claim(full, 9))])
    half = claim(full[:256], 1024)
    yield "three files of 16 GiB and one misnamed", serialise([half, half, half, misnamed(half)])
    yield "140 files of 1,024 terms of one chunk", serialise([claim(full[:1], 1)] * 140)
    yield "16,384 files of one chunk", serialise([claim(full[:1], 1, chunks=1)] * 16384)
    yield "512 files of a xorb each", serialise([claim([xorb], 1, chunks=1) for xorb in full])
    either, other = claim(tiny[:64], 1, chunks=1), claim(tiny[64:], 1, chunks=1)
    yield "files of 64 xorbs of 8,192 chunks, never the last one's", serialise([either, other] * 40)


def make_xorbs(site: Site, count: int, *, chunks: int, length: int) -> list[Xorb]:
    """Record xorbs of random digests, each as sent to the bucket."""
    made = [(Digest(os.urandom(32)), make_table(chunks, length)) for _ in range(count)]
    now = site.clock()
    stamps = {"stored_at": now, "mentioned_at": now}
    with writing(site.engine) as session:
        for digest, table in made:
            row = {"digest": to_text(digest), "size": table.stored_bytes, "unpacked": table.size_bytes}
            upserts.insert_new(session, XorbRow, [row | {"chunks": table.to_bytes()} | stamps])
        bucket_id = LocalBuckets(session, site.blobs).id_of(BUCKET)
        claims.add(session, bucket_id, Claimed.XORB, [to_text(digest) for digest, _ in made])
    return made


def make_table(chunks: int, length: int) -> ChunkTable:
    """Write the table of a xorb of random digests."""
    table = TableBuilder()
    for _ in range(chunks):
        table.add(Digest(os.urandom(32)), stored_length=length + 8, length=length)
    return table.build()


def claim(xorbs: Sequence[Xorb], per_term: int, *, chunks: int | None = None) -> FileClaim:
    """Claim the file of all chunks of the xorbs, or of the first `chunks` of each, in terms of `per_term`."""
    parts = [
        (digest, table, start, min(start + per_term, len(table)))
        for digest, table in xorbs
        for start in range(0, chunks or len(table), per_term)
    ]
    terms = tuple(Term(digest, start, end, table.length(start, end)) for digest, table, start, end in parts)
    proofs = tuple(term_hash(table.raw_digests(start, end)) for _, table, start, end in parts)
    return FileClaim(file_hash_of(table.stretch(start, end) for _, table, start, end in parts), terms, proofs)


def misnamed(honest: FileClaim) -> FileClaim:
    """Return the claim under another name, which is found out last."""
    return FileClaim(Digest(os.urandom(32)), honest.terms, honest.proofs)


def verify(site: Site, shard: bytes) -> tuple[float, str]:
    """Return the seconds of CPU that verifying a shard takes, and how that ends."""
    with writing(site.engine) as session:
        reach = Reach(session, LocalBuckets(session, site.blobs).id_of(BUCKET), OWNER)
        began = time.process_time()
        try:
            checked = check_shard(io.BytesIO(shard), reach)
            answer = f"{len(checked.contents)} files accepted{'' if checked.is_whole else ', then the rest'}"
        except InvalidXet as error:
            answer = f"refused, {error.message}"
        return time.process_time() - began, answer


if __name__ == "__main__":
    main()
