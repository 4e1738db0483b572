"""What only PostgreSQL can get wrong: a bucket that goes while it is written, and writers who wait for each other."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import text
from sqlmodel import Session

from storage.database import reading, writing
from storage.local import contents, fsck, sweep, xorbs
from storage.local.buckets import LocalBuckets
from storage.local.contents import Content
from storage.local.ingest import register_shard
from storage.local.rows import ContentRow, XorbRow
from storage.paths import BucketName, parse_bucket
from storage.settings import Settings
from storage.site import Site, open_site
from storage.xet.hashes import chunk_hash, from_text, to_text
from storage.xet.shards import serialise
from tests.board import postgres
from tests.conftest import CHALLENGE, HeldClock, eventually
from tests.storage.xet.builders import claim, noise, xorb
from tests.web.hub.conftest import Access, Hub, add, copy, delete
from tests.web.hub.serve_hub import hub_app
from web.hub import batches
from web.text import UNSTORABLE

MINE, THEIRS, OTHER = "race/tiny-a1", "race/tiny-bob", "race/tiny-a2"
PIECES = [noise(3000, seed) for seed in range(4)]
FRESH = [noise(3000, seed) for seed in range(10, 14)]


server = pytest.fixture(scope="module")(postgres.served)


@pytest.fixture
def site(server: str, tmp_path: Path, clock: HeldClock) -> Iterator[Site]:
    """A race on a database of its own."""
    challenge = tmp_path / "challenge.toml"
    challenge.write_text(CHALLENGE)
    settings = Settings(data=tmp_path / "data", challenge=challenge, database_url=postgres.new_database(server))
    opened = open_site(settings, clock=clock)
    yield opened
    opened.engine.dispose()


@pytest.fixture
def hub(site: Site) -> Iterator[Hub]:
    """The Hub's routes, which answer 500 where they break; alice and bob have the same file, each in a bucket."""
    with TestClient(hub_app(site), raise_server_exceptions=False) as http:
        made = Hub(http, site)
        for user, bucket in (("alice", MINE), ("bob", THEIRS)):
            made.add_user(user)
            made.create(user, bucket)
            made.upload(user, bucket, "f", PIECES)
        made.create("alice", OTHER)
        yield made


def waiting(site: Site) -> int:
    """Count the locks that somebody waits for."""
    with reading(site.engine) as session:
        return int(session.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")) or 0)


Step = Callable[[LocalBuckets], object]


@contextmanager
def crossed(site: Site, first: Step, call: Callable[[], Response], second: Step) -> Iterator[Future[Response]]:
    """Take a first step, call until the call waits for that, take a second step and commit."""
    with ThreadPoolExecutor(1) as pool:
        with writing(site.engine) as session:
            store = LocalBuckets(session, site.blobs, clock=site.clock)
            first(store)
            answer = pool.submit(call)
            eventually(lambda: answer.done() or waiting(site), what="the call's waiting")
            second(store)
        yield answer


def overtaken(site: Site, change: Step, call: Callable[[], Response]) -> AbstractContextManager[Future[Response]]:
    """Make a change, call while it isn't committed until the call waits for it, then commit."""
    return crossed(site, change, call, lambda _store: None)


def deletes(name: str) -> Step:
    return lambda store: store.delete(parse_bucket(name))


def asks(hub: Hub, access: Access, piece: bytes) -> Response:
    return hub.http.get(f"{access.base}/v1/chunks/default/{to_text(chunk_hash(piece))}", headers=access.headers)


def grants(hub: Hub, access: Access, pieces: list[bytes]) -> Response:
    url = f"{access.base}/v1/xorb-grants/default/{to_text(xorb(pieces)[2])}"
    return hub.http.post(url, json={"length": 1}, headers=access.headers)


KNOWN = serialise([claim(xorb(PIECES)[1])])
DIGEST = to_text(claim(xorb(PIECES)[1]).digest)
CALLS: dict[str, Callable[[Hub, Access], Response]] = {
    "add": lambda hub, _: hub.batch("alice", MINE, add("g", DIGEST)),
    "copy": lambda hub, _: hub.batch("alice", MINE, copy("g", DIGEST, THEIRS)),
    "remove": lambda hub, _: hub.batch("alice", MINE, delete("f")),
    "xorb": lambda hub, access: hub.send_xorb(access, FRESH),
    "shard": lambda hub, access: hub.send_shard(access, KNOWN),
    "streamed shard": lambda hub, access: hub.send_shard(access, KNOWN, "/v2/shards"),
    "settings": lambda hub, _: hub.call("alice", "PUT", f"/api/buckets/{MINE}/settings", json={"private": True}),
    "move": lambda hub, _: hub.call(
        "alice", "POST", "/api/repos/move", json={"fromRepo": MINE, "toRepo": "race/tiny-b"}
    ),
    "delete": lambda hub, _: hub.call("alice", "DELETE", f"/api/buckets/{MINE}"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_write_beside_the_buckets_end_finds_no_bucket(hub: Hub, case: str) -> None:
    access = hub.access("alice", MINE)
    with overtaken(hub.site, deletes(MINE), lambda: CALLS[case](hub, access)) as answer:
        assert (answer.result().status_code, answer.result().headers["X-Error-Code"]) == (404, "RepoNotFound")


OFFERS: dict[str, Callable[[Hub, Access], Response]] = {
    "chunk": lambda hub, access: asks(hub, access, PIECES[0]),
    "xorb": lambda hub, access: grants(hub, access, PIECES),
}


@pytest.mark.parametrize("case", OFFERS)
def test_an_offer_beside_the_buckets_end_finds_no_bucket(hub: Hub, case: str) -> None:
    """A bucket that has nothing yet is offered what the writer could read elsewhere, which is noted."""
    with writing(hub.site.engine) as session:
        LocalBuckets(session, hub.site.blobs).delete(parse_bucket(MINE))
    access = hub.access("alice", OTHER)
    with overtaken(hub.site, deletes(OTHER), lambda: OFFERS[case](hub, access)) as answer:
        assert answer.result().status_code == 404


def test_a_copy_from_a_bucket_that_goes_is_refused_by_its_line(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source goes after the writer was found to be allowed to read it."""
    asked = batches._may_read

    def then_it_goes(site: Site, session: Session, name: BucketName, user: str) -> bool:
        may = asked(site, session, name, user)
        with writing(site.engine) as other:
            LocalBuckets(other, site.blobs).delete(name)
        return may

    monkeypatch.setattr(batches, "_may_read", then_it_goes)
    answer = hub.batch("alice", MINE, copy("g", DIGEST, THEIRS), add("h", DIGEST))
    assert [line["path"] for line in answer.json()["failed"]] == ["g"]


def test_a_name_goes_to_one_of_two(hub: Hub) -> None:
    """The other one hears what it would have heard a moment later."""
    taken = "race/tiny-new"

    def make(store: LocalBuckets) -> None:
        store.create(parse_bucket(taken), owner="alice")

    with overtaken(hub.site, make, lambda: hub.call("alice", "POST", f"/api/buckets/{taken}", json={})) as answer:
        assert (answer.result().status_code, answer.result().json()["id"]) == (409, taken)
    body = {"fromRepo": OTHER, "toRepo": "race/tiny-newer"}

    def move(store: LocalBuckets) -> None:
        store.rename(parse_bucket(MINE), parse_bucket("race/tiny-newer"))

    with overtaken(hub.site, move, lambda: hub.call("alice", "POST", "/api/repos/move", json=body)) as answer:
        assert answer.result().status_code == 409


def test_a_sweep_lets_be_what_a_shard_holds_and_waits_for_nobody(hub: Hub, clock: HeldClock) -> None:
    """It used to hold the content and wait for the xorb; the shard held the xorb and waited for the content."""
    for user, bucket in (("alice", MINE), ("bob", THEIRS)):
        assert hub.batch(user, bucket, delete("f")).status_code == 200
    clock.forward(days=30)
    content = contents.verified(from_text(DIGEST), 12000, claim(xorb(PIECES)[1]).terms, [])
    with writing(hub.site.engine) as session:
        bucket_id = LocalBuckets(session, hub.site.blobs).id_of(parse_bucket(MINE))
        assert xorbs.mention(session, content.xorbs, now=clock()) == 1
        sweeper = threading.Thread(target=lambda: sweep.sweep(hub.site.engine, hub.site.blobs, now=clock()))
        sweeper.start()
        eventually(lambda: not sweeper.is_alive() or waiting(hub.site), what="the sweep's end")
        register_shard(session, [content], bucket_id=bucket_id, now=clock())
        assert not sweeper.is_alive()
    sweeper.join()
    assert hub.batch("alice", MINE, add("f", DIGEST)).status_code == 200
    assert list(fsck.check_contents(hub.site.engine, repair=False, advance=lambda _: None)) == []
    with reading(hub.site.engine) as session:
        assert session.get(ContentRow, DIGEST)
        assert session.get(XorbRow, to_text(xorb(PIECES)[2]))


FIRST, SECOND = sorted((claim(xorb(PIECES)[1], at, at + 1) for at in range(2)), key=lambda each: to_text(each.digest))


def test_two_who_register_the_same_files_in_another_order_both_succeed(hub: Hub) -> None:
    """Each used to hold one file and wait for the other one's."""
    access = hub.access("bob", THEIRS)
    first, second = (contents.verified(each.digest, 3000, each.terms, []) for each in (FIRST, SECOND))

    def register(store: LocalBuckets, content: Content) -> None:
        contents.register(store.session, [content], now=hub.site.clock())

    shard = serialise([SECOND, FIRST])
    with crossed(
        hub.site,
        lambda store: register(store, first),
        lambda: hub.send_shard(access, shard),
        lambda store: register(store, second),
    ) as answer:
        assert answer.result().status_code == 200


def test_two_who_put_the_same_contents_in_another_order_both_succeed(hub: Hub) -> None:
    access = hub.access("bob", THEIRS)
    assert hub.send_shard(access, serialise([FIRST, SECOND])).status_code == 200
    first, second = to_text(FIRST.digest), to_text(SECOND.digest)

    def put(store: LocalBuckets, digest: str) -> None:
        contents.mention(store.session, [digest], now=hub.site.clock())

    with crossed(
        hub.site,
        lambda store: put(store, first),
        lambda: hub.batch("bob", THEIRS, add("a", second), delete("f"), add("b", first)),
        lambda store: put(store, second),
    ) as answer:
        assert answer.result().status_code == 200


def test_what_no_text_of_the_database_can_hold_is_refused_in_the_hubs_form(hub: Hub) -> None:
    """A hash is malformed like any other; SQLite takes a NUL and finds nothing."""
    access = hub.access("alice", MINE)
    for version in (1, 2):
        url = f"{access.base}/v{version}/reconstructions/{DIGEST[:-1]}%00"
        answer = hub.http.get(url, headers=access.headers)
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (400, "INVALID_XET")
    for path in (f"/api/buckets/{MINE}/tree/%00", f"/buckets/{MINE}/resolve/%00", "/api/buckets/%00"):
        answer = hub.call("alice", "GET", path)
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (422, "INVALID_REQUEST")
        assert answer.json() == {"error": UNSTORABLE}


def test_what_is_new_is_told_apart_from_what_is_here(hub: Hub) -> None:
    """A sweep that takes what was there for new would remove a xorb that somebody stored just now."""
    access, name = hub.access("alice", MINE), to_text(xorb(FRESH)[2])
    assert hub.send_xorb(access, FRESH).json() == {"was_inserted": True}
    assert hub.send_xorb(access, FRESH).json() == {"was_inserted": False}
    assert sweep._remove_orphan(hub.site.engine, hub.site.blobs, name, now=hub.site.clock()) is None
    assert hub.site.blobs.path(name).exists()
