"""Every sentence of the BucketStore contract, on every backend: the embedded store, and a Hub (our own server)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from agents import tokens
from agents.rows import UserRow
from storage.buckets import (
    HANDSHAKE,
    SYSTEM,
    BucketExists,
    BucketNotFound,
    BucketStore,
    Copy,
    Delete,
    FileNotInBucket,
    NameTaken,
    Put,
)
from storage.database import reading, writing
from storage.errors import Conflict, Corrupt, InvalidPath, TooLarge, Unavailable
from storage.hub.buckets import HubTokenMissing, connect
from storage.hub.failing import ChangeRefused, HalfApplied
from storage.paths import BucketName
from storage.settings import Settings
from storage.site import Site, open_site
from tests.conftest import CHALLENGE
from tests.storage.xet.builders import noise
from tests.web.hub.listening import listening
from tests.web.hub.serve_hub import hub_app

ABSENT = BucketName("race", "tiny-none")


@dataclass
class Backend:
    """A kind of store; each block is a transaction of whoever writes, undone if it raises."""

    kind: str
    site: Site
    transaction: Callable[[], AbstractContextManager[BucketStore]]


_numbers = count()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, str, str]]:
    """Serve a site's Hub routes from a thread; give it with its address and alice's token."""
    folder = tmp_path_factory.mktemp("served")
    challenge = folder / "challenge.toml"
    challenge.write_text(f"{CHALLENGE}[limits]\nbuckets_per_user = 1000\n")
    site = open_site(Settings(data=folder / "data", challenge=challenge))
    with writing(site.engine) as session:
        session.add(UserRow(name="alice", created_at=site.clock()))
        session.flush()
        token = tokens.issue(session, "alice", secret=site.secret, now=site.clock())
    with listening(hub_app(site)) as port:
        yield site, f"http://127.0.0.1:{port}", token
    site.engine.dispose()


@pytest.fixture(scope="module")
def hub(served: tuple[Site, str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    site, url, token = served
    home = str(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("HF_HOME", home), ("HF_XET_CACHE", home), ("PADDOCK_HUB_TOKEN", token)):
            patch.setenv(name, value)
        kept = site.challenge.storage.model_copy(update={"backend": "hub", "endpoint": url})

        @contextmanager
        def transaction() -> Iterator[BucketStore]:
            yield connect(kept, own=frozenset({site.central}))

        yield Backend("hub", site, transaction)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    folder = tmp_path_factory.mktemp("local")
    challenge = folder / "challenge.toml"
    challenge.write_text(CHALLENGE)
    site = open_site(Settings(data=folder / "data", challenge=challenge))

    @contextmanager
    def transaction() -> Iterator[BucketStore]:
        with writing(site.engine) as session:
            yield site.buckets(session)

    yield Backend("local", site, transaction)
    site.engine.dispose()


@pytest.fixture(params=["local", "hub"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.getfixturevalue(request.param)


@pytest.fixture
def one(backend: Backend) -> BucketName:
    return made(backend)


@pytest.fixture
def two(backend: Backend) -> BucketName:
    return made(backend, private=True)


@pytest.fixture
def store(backend: Backend) -> Iterator[BucketStore]:
    with backend.transaction() as opened:
        yield opened


def made(backend: Backend, *, owner: str = SYSTEM, private: bool = False) -> BucketName:
    """Make a bucket of its own for a test."""
    name = BucketName("race", f"tiny-b{next(_numbers)}")
    with backend.transaction() as opened:
        opened.create(name, owner=owner, private=private)
    return name


def paths(store: BucketStore, name: BucketName, prefix: str = "") -> list[str]:
    """List a bucket but for the file that says whose it is."""
    return [file.path for file in store.list(name, prefix) if file.path != HANDSHAKE]


def test_a_bucket_is_found_as_it_was_made(store: BucketStore, one: BucketName) -> None:
    name = BucketName("race", f"tiny-b{next(_numbers)}")
    made = store.create(name, owner="alice", private=True)
    assert store.get(name) == made
    assert (made.name, made.owner, made.private) == (name, "alice", True)
    assert store.get(one).private is False
    assert store.get(one).created_at.utcoffset() is not None
    assert store.find(one) == store.get(one)


def test_a_name_is_made_once(store: BucketStore, one: BucketName) -> None:
    with pytest.raises(BucketExists):
        store.create(one, owner="alice")


def test_a_bucket_that_is_not_there_is_none_or_says_so(store: BucketStore) -> None:
    assert store.find(ABSENT) is None
    assert store.stat(ABSENT, "a") is None
    for ask in (
        lambda: store.get(ABSENT),
        lambda: store.list(ABSENT),
        lambda: store.apply(ABSENT, []),
        lambda: store.apply(ABSENT, [Put("a", b"a")]),
    ):
        with pytest.raises(BucketNotFound):
            ask()


@pytest.mark.parametrize("size", [0, 1, 8191, 70_000, 3_000_000])
def test_what_was_put_is_read_back(store: BucketStore, one: BucketName, tmp_path: Path, size: int) -> None:
    source = tmp_path / "source"
    source.write_bytes(noise(size))
    store.apply(one, [Put("from-bytes", noise(size)), Put("d é/from path", source, content_type="text/plain")])
    for path in ("from-bytes", "d é/from path"):
        assert store.read(one, path, max_bytes=size) == b"".join(store.open(one, path)) == noise(size)
    first, second = (store.stat(one, path) for path in ("from-bytes", "d é/from path"))
    assert first is not None
    assert second is not None
    assert (first.size, first.digest, len(first.digest)) == (size, second.digest, 64)
    assert first.mtime.utcoffset() is not None


def test_ranges_are_exact(store: BucketStore, one: BucketName) -> None:
    data = noise(200_000)
    store.apply(one, [Put("file", data)])
    for start, end in ((0, 1), (0, None), (5, 5), (70_000, 140_000), (199_999, None), (10, 10**9)):
        assert b"".join(store.open(one, "file", start=start, end=end)) == data[start:end]


def test_a_missing_file_says_so_at_once(store: BucketStore, one: BucketName) -> None:
    assert store.stat(one, "none") is None
    for ask in (lambda: store.open(one, "none"), lambda: store.read(one, "none")):
        with pytest.raises(FileNotInBucket):
            ask()


def test_a_large_file_is_not_read_at_once(store: BucketStore, one: BucketName) -> None:
    store.apply(one, [Put("a", bytes(100))])
    assert store.read(one, "a", max_bytes=100) == bytes(100)
    with pytest.raises(TooLarge):
        store.read(one, "a", max_bytes=99)


def test_a_put_replaces_and_a_copy_keeps_what_it_copied(store: BucketStore, one: BucketName, two: BucketName) -> None:
    store.apply(one, [Put("a", b"old"), Copy("b", one, "a")])
    store.apply(one, [Put("a", b"new")])
    store.apply(two, [Copy("x/y", one, "b")])
    assert [store.read(*file) for file in ((one, "a"), (one, "b"), (two, "x/y"))] == [b"new", b"old", b"old"]


def test_a_copy_moves_no_data(backend: Backend, one: BucketName, two: BucketName) -> None:
    with backend.transaction() as store:
        store.apply(one, [Put("a", noise(300_000))])
    before = xorbs_of(backend.site)
    with backend.transaction() as store:
        store.apply(two, [Copy("b", one, "a"), Copy("c", one, "a")])
        assert store.read(two, "b") == store.read(two, "c") == noise(300_000)
    assert xorbs_of(backend.site) == before


def xorbs_of(site: Site) -> dict[str, int]:
    files = (path for path in (site.blobs.folder / "xorbs").rglob("*") if path.is_file())
    return {path.name: path.stat().st_mtime_ns for path in files}


def test_changes_take_effect_in_order(store: BucketStore, one: BucketName) -> None:
    store.apply(one, [Put("a", b"1"), Copy("b", one, "a"), Copy("c", one, "b"), Delete("a"), Put("a", b"2")])
    assert [store.read(one, path) for path in paths(store, one)] == [b"2", b"1", b"1"]
    store.apply(one, [Copy("d", one, "a"), Copy("a", one, "b"), Copy("b", one, "d"), Delete("d"), Delete("c")])
    assert {path: store.read(one, path) for path in paths(store, one)} == {"a": b"1", "b": b"2"}
    store.apply(one, [Copy("e", one, "a"), Put("a", b"3"), Delete("b")])
    assert {path: store.read(one, path) for path in paths(store, one)} == {"a": b"3", "e": b"1"}


@pytest.mark.parametrize(
    ("last", "error"),
    [
        (Delete("missing"), FileNotInBucket),
        (Copy("x", ABSENT, "a"), BucketNotFound),
        (Put("../x", b""), InvalidPath),
        (Put("/x", b""), InvalidPath),
        (Put("x//y", b""), InvalidPath),
        (Put("x\0", b""), InvalidPath),
        (Put("x" * 4096, b""), InvalidPath),
        (Put("e\u0301", b""), InvalidPath),
        (Delete(""), InvalidPath),
        (Put("A", b""), NameTaken),
        (Put("a/b", b""), NameTaken),
        (Put("kept/x", b""), Conflict),
    ],
)
def test_a_batch_that_fails_changes_nothing(
    backend: Backend, one: BucketName, last: Put | Copy | Delete, error: type[Exception]
) -> None:
    with backend.transaction() as store:
        store.apply(one, [Put("kept", b"kept")])
    changes = [Put("a", b"a"), Put("z", b"z"), last]
    with pytest.raises(error), backend.transaction() as store:
        store.apply(one, [*changes, *([Delete("kept")] if last != Put("kept/x", b"") else [])])
    with backend.transaction() as store:
        assert paths(store, one) == ["kept"]


def test_a_copy_of_what_is_not_there_changes_nothing(backend: Backend, one: BucketName, two: BucketName) -> None:
    with pytest.raises(FileNotInBucket), backend.transaction() as store:
        store.apply(one, [Put("a", b"a"), Copy("x", two, "missing")])
    with pytest.raises(FileNotInBucket), backend.transaction() as store:
        store.apply(one, [Put("a", b"a"), Delete("a"), Copy("x", one, "a")])
    with backend.transaction() as store:
        assert paths(store, one) == []


def test_deleting_a_path_twice_in_a_batch_is_refused(store: BucketStore, one: BucketName) -> None:
    store.apply(one, [Put("a", b"")])
    with pytest.raises(FileNotInBucket):
        store.apply(one, [Delete("a"), Delete("a")])


@pytest.mark.parametrize("twin", ["readme.md", "README.MD", "Readme.md/x", "dir", "DIR"])
def test_a_twin_of_what_lies_there_is_refused(backend: Backend, one: BucketName, twin: str) -> None:
    with backend.transaction() as store:
        store.apply(one, [Put("Readme.md", b"1"), Put("Dir/x", b"2")])
    with pytest.raises(Conflict), backend.transaction() as store:
        store.apply(one, [Put(twin, b"3")])
    with backend.transaction() as store:
        assert paths(store, one) == ["Dir/x", "Readme.md"]


def test_a_name_is_free_for_its_twin_once_the_same_batch_deletes_it(store: BucketStore, one: BucketName) -> None:
    store.apply(one, [Put("Readme.md", b"1"), Put("a", b"2")])
    store.apply(one, [Put("readme.md", b"3"), Delete("Readme.md"), Delete("a"), Put("a/b", b"4")])
    assert paths(store, one) == ["a/b", "readme.md"]


def test_a_listing_goes_by_folders_not_by_letters(store: BucketStore, one: BucketName) -> None:
    names = ["dir/b", "dir/a/z", "dir0", "dirt/x", "é/f", ".led/g"]
    store.apply(one, [Put(path, b"") for path in names])
    assert paths(store, one) == sorted(names)
    assert paths(store, one, "dir") == paths(store, one, "dir/") == ["dir/a/z", "dir/b"]
    assert paths(store, one, "dir0") == ["dir0"]
    assert paths(store, one, "é") == ["é/f"]
    assert paths(store, one, "di") == []


def test_pages_of_a_listing_join_up(store: BucketStore, one: BucketName) -> None:
    store.apply(one, [Put(f"f/{i:02}", b"") for i in range(25)])
    seen: list[str] = []
    while page := store.list(one, "f", after=seen[-1] if seen else "", limit=10):
        assert len(page) <= 10
        seen += [file.path for file in page]
    assert seen == [f"f/{i:02}" for i in range(25)]


def test_more_changes_than_the_hub_takes_in_one_call_arrive_all(
    store: BucketStore, one: BucketName, two: BucketName
) -> None:
    store.apply(two, [Put("0", b"same")])
    store.apply(one, [Copy(f"{i}", two, "0") for i in range(1100)])
    assert len(paths(store, one)) == 1100
    store.apply(one, [*(Delete(f"{i}") for i in range(1, 1100)), Put("new", b"x"), Copy("copy", one, "0")])
    assert paths(store, one) == ["0", "copy", "new"]


def test_bytes_that_are_damaged_are_not_handed_out(backend: Backend, one: BucketName) -> None:
    data = noise(400_000 + len(backend.kind))
    before = xorbs_of(backend.site)
    with backend.transaction() as store:
        store.apply(one, [Put("a", data)])
    (name,) = xorbs_of(backend.site).keys() - before.keys()
    damage(backend.site.blobs.path(name))
    with pytest.raises((Corrupt, Unavailable)), backend.transaction() as store:
        b"".join(store.open(one, "a"))


def damage(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)


def test_what_is_rolled_back_was_never_there_over_several_buckets(local: Backend) -> None:
    one, two = made(local), made(local)

    def changed(store: BucketStore, *needed: str) -> None:
        store.apply(one, [Put("a", b"a")])
        store.apply(two, [Copy("b", one, "a"), Copy("c", two, "b")] if store.stat(one, "a") else [])
        store.apply(one, [Delete("a"), *map(Delete, needed)])

    with pytest.raises(FileNotInBucket), local.transaction() as store:
        changed(store, "what is not there")
    with local.transaction() as store:
        assert (paths(store, one), paths(store, two)) == ([], [])
        changed(store)
    with local.transaction() as store:
        assert (paths(store, one), paths(store, two)) == ([], ["b", "c"])


def test_at_the_hub_a_bucket_belongs_to_whom_its_handshake_names_and_to_nobody_without(hub: Backend) -> None:
    name = made(hub, owner="bob")
    with hub.transaction() as store:
        assert store.get(name).owner == "bob"
        for said in (b"system\n", b"", b"x" * 2000):
            store.apply(name, [Put(HANDSHAKE, said)])
            assert store.get(name).owner == ""
        store.apply(name, [Delete(HANDSHAKE)])
        assert store.get(name).owner == ""
        assert store.get(hub.site.central).owner == SYSTEM


def test_at_the_hub_a_refusal_that_only_it_can_know_may_come_half_way_and_says_so(hub: Backend) -> None:
    name = made(hub)
    with hub.transaction() as store:
        store.apply(name, [Put("Readme.md", b"1")])
        with pytest.raises(ChangeRefused, match=r"readme\.md"):
            store.apply(name, [Put("readme.md", b"2")])
        assert paths(store, name) == ["Readme.md"]
        with pytest.raises(HalfApplied, match=r"1 of 2 changes.*readme\.md"):
            store.apply(name, [Put("readme.md", b"2"), Put("other", b"3")])
        assert paths(store, name) == ["Readme.md", "other"]


def test_a_hub_that_does_not_answer_or_does_not_let_us_is_unavailable(
    hub: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = made(hub)
    monkeypatch.setenv("PADDOCK_HUB_TOKEN", "pdk_wrong")
    with pytest.raises(Unavailable), hub.transaction() as store:
        store.apply(name, [Put("a", b"a")])
    with pytest.raises(Unavailable), hub.transaction() as store:
        store.find(name)
    monkeypatch.delenv("PADDOCK_HUB_TOKEN")
    with pytest.raises(HubTokenMissing), hub.transaction():
        pass


def test_the_challenge_file_chooses_the_backend(served: tuple[Site, str, str], hub: Backend, tmp_path: Path) -> None:
    with writing(hub.site.engine) as session:  # no person can make this one over the wire
        hub.site.buckets(session).create(BucketName("alice-admin", "tiny-audit"), owner="alice", private=True)
    challenge = tmp_path / "challenge.toml"
    text = CHALLENGE.replace('org = "race"', 'org = "alice"')
    challenge.write_text(f'{text}[storage]\nbackend = "hub"\nendpoint = "{served[1]}"\n')
    site = open_site(Settings(data=tmp_path / "data", challenge=challenge))
    with writing(site.engine) as session:
        store = site.buckets(session)
        store.apply(site.central, [Put("README.md", b"hello")])
        assert store.read(site.central, "README.md") == b"hello"
        assert [store.get(name).owner for name in (site.central, site.audit)] == [SYSTEM, SYSTEM]
    with TestClient(hub_app(site)) as http:
        answer = http.get(f"/api/buckets/{site.central}")
        assert answer.status_code == 404
        assert served[1] in answer.json()["error"]
    site.engine.dispose()
    with reading(hub.site.engine) as session:
        assert hub.site.buckets(session).read(site.central, "README.md") == b"hello"
