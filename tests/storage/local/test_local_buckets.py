"""The embedded store keeps the BucketStore contract."""

from pathlib import Path

import pytest
from sqlmodel import Session

from storage.buckets import BucketNotFound, Copy, Delete, FileNotInBucket, Put
from storage.database import reading, writing
from storage.errors import Conflict, InvalidPath, TooLarge
from storage.local.buckets import LocalBuckets
from storage.local.listing import Folder, cursor_after
from storage.paths import BucketName
from storage.site import Site
from storage.xet.cuts import CUT_BYTES, XORB_CUTS
from tests.conftest import HeldClock
from tests.storage.xet.builders import noise

ONE, TWO = BucketName("race", "tiny-one"), BucketName("race", "tiny-two")


@pytest.fixture
def store(site: Site, session: Session) -> LocalBuckets:
    made = LocalBuckets(session, site.blobs, clock=site.clock)
    made.create(ONE, owner="alice")
    made.create(TWO, owner="bob", private=True)
    return made


def paths(store: LocalBuckets, name: BucketName = ONE, prefix: str = "") -> list[str]:
    return [file.path for file in store.list(name, prefix)]


def test_a_bucket_is_found_as_it_was_made(store: LocalBuckets, clock: HeldClock) -> None:
    bucket = store.get(TWO)
    assert (bucket.name, bucket.owner, bucket.private, bucket.created_at) == (TWO, "bob", True, clock.now)
    with pytest.raises(Conflict):
        store.create(ONE, owner="bob")
    assert store.find(BucketName("race", "none")) is None
    with pytest.raises(BucketNotFound):
        store.get(BucketName("race", "none"))


@pytest.mark.parametrize("size", [0, 1, CUT_BYTES - 1, CUT_BYTES, CUT_BYTES + 1, 3 * CUT_BYTES + 5])
def test_what_was_put_is_read_back(store: LocalBuckets, tmp_path: Path, size: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(noise(size))
    store.apply(ONE, [Put("from-bytes", noise(size)), Put("from-path", source, content_type="text/plain")])
    for path in ("from-bytes", "from-path"):
        assert store.read(ONE, path) == noise(size)
    assert store.stat(ONE, "from-path") is not None
    first, second = store.list(ONE)
    assert (first.size, first.digest) == (size, second.digest)
    assert second.content_type == "text/plain"


def test_a_file_longer_than_one_xorb_is_read_back(store: LocalBuckets, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(noise(XORB_CUTS * CUT_BYTES + 1000))
    store.apply(ONE, [Put("long", source)])
    assert b"".join(store.open(ONE, "long")) == source.read_bytes()
    edge = XORB_CUTS * CUT_BYTES
    assert b"".join(store.open(ONE, "long", start=edge - 5, end=edge + 5)) == source.read_bytes()[edge - 5 : edge + 5]


@pytest.mark.parametrize(("start", "end"), [(0, 1), (0, None), (5, 5), (70_000, 140_000), (199_999, None), (10, 10**9)])
def test_ranges_are_exact(store: LocalBuckets, start: int, end: int | None) -> None:
    store.apply(ONE, [Put("file", noise(200_000))])
    assert b"".join(store.open(ONE, "file", start=start, end=end)) == noise(200_000)[start:end]


def test_the_same_bytes_are_stored_once(store: LocalBuckets, site: Site) -> None:
    store.apply(ONE, [Put("a", noise(300_000)), Put("b", noise(300_000))])
    store.apply(TWO, [Put("c", noise(300_000))])
    stored = [path for path in (site.blobs.folder / "xorbs").rglob("*") if path.is_file()]
    assert len(stored) == 1
    assert not list((site.blobs.folder / "incoming").iterdir())


def test_a_put_replaces_and_a_copy_keeps_what_it_copied(store: LocalBuckets, clock: HeldClock) -> None:
    store.apply(ONE, [Put("a", b"old"), Copy("b", ONE, "a")])
    clock.forward(seconds=5)
    store.apply(ONE, [Put("a", b"new")])
    store.apply(TWO, [Copy("x/y", ONE, "b")])
    assert store.read(ONE, "a") == b"new"
    assert store.read(ONE, "b") == b"old"
    assert store.read(TWO, "x/y") == b"old"
    file = store.stat(TWO, "x/y")
    assert file is not None
    assert file.mtime == file.uploaded_at == clock.now


def test_changes_take_effect_in_order(store: LocalBuckets) -> None:
    store.apply(ONE, [Put("a", b"1"), Copy("b", ONE, "a"), Copy("c", ONE, "b"), Delete("a"), Put("a", b"2")])
    assert [store.read(ONE, path) for path in paths(store)] == [b"2", b"1", b"1"]


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (Delete("missing"), FileNotInBucket),
        (Copy("x", TWO, "missing"), FileNotInBucket),
        (Copy("x", BucketName("race", "none"), "a"), BucketNotFound),
        (Put("../x", b""), InvalidPath),
        (Put("/x", b""), InvalidPath),
        (Put("x//y", b""), InvalidPath),
        (Delete(""), InvalidPath),
    ],
)
def test_a_batch_that_fails_changes_nothing(site: Site, last: Put | Copy | Delete, error: type[Exception]) -> None:
    with writing(site.engine) as session:
        store = LocalBuckets(session, site.blobs)
        store.create(ONE, owner="alice")
        store.create(TWO, owner="alice")
        store.apply(ONE, [Put("kept", b"kept")])
    with pytest.raises(error), writing(site.engine) as session:
        LocalBuckets(session, site.blobs).apply(ONE, [Put("a", b"a"), Delete("kept"), last])
    with reading(site.engine) as session:
        assert paths(LocalBuckets(session, site.blobs)) == ["kept"]


def test_deleting_a_path_twice_in_a_batch_is_refused(store: LocalBuckets) -> None:
    store.apply(ONE, [Put("a", b"")])
    with pytest.raises(FileNotInBucket):
        store.apply(ONE, [Delete("a"), Delete("a")])


def test_a_listing_goes_by_folders_not_by_letters(store: LocalBuckets) -> None:
    store.apply(ONE, [Put(path, b"") for path in ("dir/b", "dir/a/z", "dir0", "dirt/x", "é/f", ".led/g")])
    assert paths(store) == sorted(["dir/b", "dir/a/z", "dir0", "dirt/x", "é/f", ".led/g"])
    assert paths(store, prefix="dir") == ["dir/a/z", "dir/b"]
    assert paths(store, prefix="dir/") == ["dir/a/z", "dir/b"]
    assert paths(store, prefix="é") == ["é/f"]
    assert paths(store, prefix="di") == []


def test_pages_of_a_listing_join_up(store: LocalBuckets) -> None:
    store.apply(ONE, [Put(f"f{i:02}", b"") for i in range(25)])
    seen: list[str] = []
    while page := store.list(ONE, after=seen[-1] if seen else "", limit=10):
        seen += [file.path for file in page]
    assert seen == [f"f{i:02}" for i in range(25)]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_of_entries_join_up_and_show_each_folder_once(store: LocalBuckets, limit: int) -> None:
    names = ["a/1", "a/2", "a/3/x", "a0", "a-", "b", "c/d/e/f", "z/1", "z/2"]
    store.apply(ONE, [Put(path, b"") for path in names])
    seen, after = [], ""
    while page := store.entries(ONE, after=after, limit=limit):
        seen += [(entry.path, isinstance(entry, Folder)) for entry in page]
        after = cursor_after(page[-1])
    assert seen == [("a-", False), ("a", True), ("a0", False), ("b", False), ("c", True), ("z", True)]
    assert [entry.path for entry in store.entries(ONE, "a")] == ["a/1", "a/2", "a/3"]


def test_a_large_file_is_not_read_at_once(store: LocalBuckets) -> None:
    store.apply(ONE, [Put("a", bytes(100))])
    assert store.read(ONE, "a", max_bytes=100) == bytes(100)
    with pytest.raises(TooLarge):
        store.read(ONE, "a", max_bytes=99)


def test_missing_files_and_buckets_say_so(store: LocalBuckets) -> None:
    assert store.stat(ONE, "none") is None
    assert store.stat(BucketName("race", "none"), "a") is None
    with pytest.raises(FileNotInBucket):
        store.open(ONE, "none")
    with pytest.raises(BucketNotFound):
        store.list(BucketName("race", "none"))


def test_a_renamed_bucket_keeps_its_files_and_a_deleted_one_gives_its_name_back(store: LocalBuckets) -> None:
    store.apply(ONE, [Put("a", b"a")])
    number, new = store.id_of(ONE), BucketName("race", "tiny-new")
    with pytest.raises(Conflict):
        store.rename(ONE, TWO)
    store.rename(ONE, new)
    assert store.read(new, "a") == b"a"
    assert store.name_of(number) == new
    store.delete(new)
    assert store.name_of(number) is None
    store.create(new, owner="bob")
    assert paths(store, new) == []
    assert store.id_of(new) != number


def test_usage_counts_files_and_bytes(store: LocalBuckets) -> None:
    store.apply(ONE, [Put("a", bytes(10)), Put("b", bytes(5))])
    assert store.usage([ONE, TWO]) == {ONE: (15, 2), TWO: (0, 0)}


def test_bytes_flow_after_the_session_is_closed(site: Site) -> None:
    with writing(site.engine) as session:
        store = LocalBuckets(session, site.blobs)
        store.create(ONE, owner="alice")
        store.apply(ONE, [Put("a", noise(100_000))])
        pieces = store.open(ONE, "a")
    assert b"".join(pieces) == noise(100_000)
