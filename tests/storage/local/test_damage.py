"""Damage on disk is noticed before a wrong byte leaves, and a crash leaves nothing half-done."""

from pathlib import Path

import pytest

from storage.buckets import Put
from storage.database import reading, writing
from storage.errors import Corrupt
from storage.local.blobs import Blobs
from storage.local.buckets import LocalBuckets
from storage.local.ingest import check_xorb, keep_xorb
from storage.paths import BucketName
from storage.site import Site
from storage.xet.chunks import Scheme
from storage.xet.hashes import to_text
from tests.storage.xet.builders import name_of, noise, xorb_of_schemes

NAME = BucketName("race", "tiny-one")


def put(site: Site, data: bytes) -> None:
    with writing(site.engine) as session:
        store = LocalBuckets(session, site.blobs)
        if store.find(NAME) is None:
            store.create(NAME, owner="alice")
        store.apply(NAME, [Put("file", data)])


def read(site: Site) -> bytes:
    with reading(site.engine) as session:
        return LocalBuckets(session, site.blobs).read(NAME, "file")


def stored(site: Site) -> list[Path]:
    return [path for path in (site.blobs.folder / "xorbs").rglob("*") if path.is_file()]


@pytest.mark.parametrize("data", [noise(150_000), b"abcd" * 40_000], ids=["plain", "compressed"])
def test_a_flipped_byte_raises_and_only_whole_chunks_came_before_it(site: Site, data: bytes) -> None:
    put(site, data)
    (path,) = stored(site)
    raw = path.read_bytes()
    for position in (0, 4, 7, 8, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 0x55]) + raw[position + 1 :])
        with reading(site.engine) as session:
            pieces = LocalBuckets(session, site.blobs).open(NAME, "file")
            got = b""
            with pytest.raises(Corrupt):  # noqa: PT012 - what came before the error counts
                for piece in pieces:
                    got += piece
        assert data.startswith(got)
    path.write_bytes(raw)
    assert read(site) == data


def test_a_truncated_or_missing_xorb_raises(site: Site) -> None:
    put(site, noise(150_000))
    (path,) = stored(site)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Corrupt):
        read(site)
    path.unlink()
    with pytest.raises(Corrupt):
        read(site)


def test_a_crash_before_the_commit_leaves_a_xorb_that_the_next_upload_replaces(site: Site) -> None:
    pieces = [b"abcd" * 1000, b"efgh" * 1000]
    name = name_of(pieces)
    other_packing = xorb_of_schemes([(pieces[0], Scheme.PLAIN), (pieces[1], Scheme.GROUPED_LZ4)])

    def keep(raw: bytes, *, crash: bool) -> None:
        with writing(site.engine) as session, site.blobs.incoming() as file:
            store = LocalBuckets(session, site.blobs)
            store.create(NAME, owner="alice")
            file.write(raw)
            table = check_xorb(file, name)
            keep_xorb(session, site.blobs, file, table, name, bucket_id=store.id_of(NAME), now=site.clock())
            if crash:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        keep(other_packing, crash=True)
    assert site.blobs.path(to_text(name)).read_bytes() == other_packing
    with reading(site.engine) as session:
        assert LocalBuckets(session, site.blobs).find(NAME) is None
    plain = xorb_of_schemes([(piece, Scheme.PLAIN) for piece in pieces])
    keep(plain, crash=False)
    assert site.blobs.path(to_text(name)).read_bytes() == plain


def test_another_packing_of_a_stored_xorb_does_not_replace_it(site: Site) -> None:
    pieces = [b"abcd" * 1000]
    put(site, pieces[0])
    (path,) = stored(site)
    before = path.read_bytes()
    with writing(site.engine) as session, site.blobs.incoming() as file:
        file.write(xorb_of_schemes([(pieces[0], Scheme.PLAIN)]))
        table = check_xorb(file, name_of(pieces))
        bucket_id = LocalBuckets(session, site.blobs).id_of(NAME)
        assert keep_xorb(session, site.blobs, file, table, name_of(pieces), bucket_id=bucket_id, now=site.clock())
    assert path.read_bytes() == before
    assert read(site) == pieces[0]


def test_a_generation_lasts_until_its_file_is_removed(tmp_path: Path) -> None:
    first = Blobs(tmp_path / "store").generation
    assert Blobs(tmp_path / "store").generation == first
    (tmp_path / "store" / "generation").unlink()
    assert Blobs(tmp_path / "store").generation != first


def test_a_temporary_file_that_was_not_kept_is_gone(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "store")
    with blobs.incoming() as file:
        file.write(b"half")
    assert list((tmp_path / "store" / "incoming").iterdir()) == []
