"""The meter equals the sum over the files after any history."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlmodel import Session, select

from storage import quota_meter as meter
from storage.buckets import SYSTEM, Copy, Put
from storage.database import writing
from storage.local import contents, quarantine
from storage.local.adoption import Operation
from storage.local.rows import ContentRow
from storage.paths import BucketName
from storage.quota_limits import ByteLimits
from storage.quota_rows import MeteredContentRow, MeteredXorbRow, MeterRow
from storage.settings import Settings
from storage.site import Site, open_site
from storage.xet.hashes import from_text, to_text
from storage.xet.terms import parse_terms
from tests.conftest import CHALLENGE, HeldClock
from tests.storage.quota_world import BUCKETS, RUNS, World, add, borrow, passing_world, remove

_names, _paths = st.sampled_from(sorted(BUCKETS)), st.sampled_from(["a", "b", "c/d"])
_contents = st.integers(0, len(RUNS))
_line = st.one_of(
    st.tuples(st.just("add"), _paths, _contents),
    st.tuples(st.just("borrow"), _paths, _contents, _names),
    st.tuples(st.just("remove"), _paths),
)
_most = st.none() | st.integers(0, 120_000)
_limits = st.builds(ByteLimits, _most, _most, st.none() | st.integers(0, 5))
_step = st.one_of(
    st.tuples(st.just("batch"), _names, st.lists(_line, min_size=1, max_size=6), _limits),
    st.tuples(st.just("put"), _names, _paths),
    st.tuples(st.just("copy"), _names, _paths, _names, _paths),
    st.tuples(st.just("delete"), _names),
    st.tuples(st.just("forget")),
)


@pytest.fixture(scope="module")
def lasting_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("quota")
    (folder / "challenge.toml").write_text(CHALLENGE)
    opened = open_site(Settings(data=folder / "data", challenge=folder / "challenge.toml"), clock=HeldClock())
    with writing(opened.engine) as session:  # what all examples share
        world = World(opened, session)
        for name in BUCKETS:
            world.delete(name)
    yield opened
    opened.engine.dispose()


@given(st.lists(_step, max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_meter_is_the_sum_of_the_files_after_any_history(lasting_site: Site, steps: list[tuple[Any, ...]]) -> None:
    with passing_world(lasting_site) as world:
        for step in steps:
            _take(world, step)
            assert world.metered() == world.modelled()
        for name in list(world.files):
            world.delete(name)
        for table in (MeteredContentRow, MeteredXorbRow):
            assert world.session.exec(select(table)).all() == []


def _take(world: World, step: tuple[Any, ...]) -> None:
    kind, *rest = step
    if kind == "forget":
        meter.forget(world.session)
        return
    name = rest[0]
    if name not in world.files:
        world.create(name)
    if kind == "batch":
        _batch(world, name, [_operation(world, line) for line in rest[1]], rest[2])
    elif kind == "delete":
        world.delete(name)
    else:
        _server_write(world, kind, rest)


def _operation(world: World, line: tuple[Any, ...]) -> Operation:
    kind, path, *rest = line
    if kind == "add":
        return add(path, world.digests[rest[0]])
    return borrow(path, world.digests[rest[0]], rest[1]) if kind == "borrow" else remove(path)


def _batch(world: World, name: str, lines: list[Operation], limits: ByteLimits) -> None:
    """No batch makes what is over a limit grow."""
    known = [line for line in lines if getattr(line, "source", None) is None or line.source.name in world.files]
    owned = [each for each, owner in BUCKETS.items() if owner == BUCKETS[name]]
    before = world.usage(*owned)
    world.batch(name, known, limits)
    after = world.usage(*owned)
    for (_, limit, used), (_, _, was) in zip(limits.pairs(after), limits.pairs(before), strict=True):
        assert limit is None or used <= max(limit, was)


def _server_write(world: World, kind: str, rest: list[Any]) -> None:
    """Write as the server does: what was put is made of chunks of its own, so only copies of known contents count."""
    name, path = rest[:2]
    where = BucketName("race", name)
    if kind == "put":
        world.store.apply(where, [Put(path, b"")])
    elif rest[3] in world.files.get(rest[2], {}):
        world.store.apply(where, [Copy(path, BucketName("race", rest[2]), rest[3])])
    world.files[name] = {file.path: file.digest for file in world.store.list(where)}


def test_a_meter_of_files_that_were_there_before_it_is_made_when_it_is_needed(session: Session, site: Site) -> None:
    world = World(site, session)
    world.batch("ada-1", [add("a", world.digests[1]), add("b", world.digests[2])])
    meter.forget(session)
    assert world.metered() == world.modelled()
    world.batch("ada-1", [add("b", world.digests[5])])
    assert world.metered() == world.modelled()


def test_a_meter_that_went_wrong_is_made_anew(session: Session, site: Site) -> None:
    world = World(site, session)
    world.batch("ada-1", [add("a", world.digests[1]), add("b", world.digests[2])])
    for row in session.exec(select(MeteredContentRow)).all():
        session.delete(row)
    session.flush()
    world.batch("ada-1", [remove("a")])
    assert world.metered() == world.modelled()


def test_a_repair_and_the_upload_that_mends_it_leave_the_meter_exact(session: Session, site: Site) -> None:
    world = World(site, session)
    digest = world.digests[1]
    world.batch("ada-1", [add("a", digest), add("b", world.digests[5])])
    whole, terms = world.usage("ada-1"), session.get_one(ContentRow, digest).terms
    quarantine.set_contents_aside(session, [digest])
    session.expire_all()
    assert meter.owner_usage(session, "ada").stored < whole.stored
    mended = contents.verified(from_text(digest), world.sizes[digest], parse_terms(terms), [])
    contents.register(session, [mended], now=site.clock())
    assert world.metered() == world.modelled()
    world.batch("ada-1", [remove("a")])
    assert world.metered() == world.modelled()


def test_a_content_that_comes_back_recasts_the_meters_that_hold_it_alone(session: Session, site: Site) -> None:
    world = World(site, session)
    digest = world.digests[1]
    terms = session.get_one(ContentRow, digest).terms
    world.batch("ada-1", [add("a", digest)])
    quarantine.set_contents_aside(session, [digest])
    session.expire_all()
    for name in ("ada-1", "ada-2", "bob-1"):
        world.batch(name, [add("b", world.digests[5])])
    mended = contents.verified(from_text(digest), world.sizes[digest], parse_terms(terms), [])
    contents.register(session, [mended], now=site.clock())
    ids = {name: meter.bucket_scope(world.store.id_of(BucketName("race", name))) for name in BUCKETS}
    kept = set(session.exec(select(MeterRow.scope)).all())
    assert kept == {ids["ada-2"], ids["bob-1"], meter.owner_scope("bob")}
    assert world.metered() == world.modelled()


def test_a_xorb_that_comes_back_recasts_the_meters_that_were_made_without_it(session: Session, site: Site) -> None:
    """As it may between the two passes of fsck: the second one then finds its contents whole."""
    world = World(site, session)
    world.batch("ada-1", [add("a", world.digests[1]), add("b", world.digests[5])])
    world.batch("bob-1", [add("b", world.digests[5])])
    quarantine.set_xorb_aside(session, site.blobs, to_text(world.tables["x"].xorb_hash()))
    world.batch("ada-2", [add("c", world.digests[2])])
    assert meter.owner_usage(session, "ada").stored < world.usage("ada-1", "ada-2").stored
    world.keep(site, "x", 6)
    assert world.metered() == world.modelled()
    world.batch("ada-1", [remove("a")])
    assert world.metered() == world.modelled()


def test_a_rolled_back_batch_leaves_the_meter_as_it_was(site: Site) -> None:
    with writing(site.engine) as session:
        world = World(site, session)
        world.batch("ada-1", [add("a", world.digests[1])])
    before = world.usage("ada-1")
    with writing(site.engine) as session:
        world.session = world.store.session = session
        world.batch("ada-1", [add("b", world.digests[5])])
        assert meter.owner_usage(session, "ada") != before
        session.rollback()
    with writing(site.engine) as session:
        assert meter.owner_usage(session, "ada") == before


def test_the_servers_own_buckets_have_no_meter(session: Session, site: Site) -> None:
    site.buckets(session).apply(site.central, [Put("a", b"a")])
    assert session.exec(select(MeterRow)).all() == []
    assert site.buckets(session).get(site.central).owner == SYSTEM  # type: ignore[attr-defined]
