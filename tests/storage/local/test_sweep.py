"""A sweep removes what nothing refers to and nobody mentioned for three weeks, and nothing else."""

import os
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from storage.database import reading, writing
from storage.local import xorbs
from storage.local.rows import ContentRow, XorbRow
from storage.local.sweep import Swept, foresee, sweep
from storage.site import Site
from storage.xet.errors import InvalidXet
from storage.xet.hashes import from_text
from tests.conftest import HeldClock
from tests.storage.local import stores
from tests.storage.xet.builders import noise
from web.commands.store import app

PIECES = [noise(5000, 1), noise(5000, 2)]
OTHERS = [noise(5000, 3), noise(5000, 4)]


@pytest.fixture(autouse=True)
def bucket(site: Site) -> None:
    stores.make_bucket(site)


def swept(site: Site) -> Swept:
    """Sweep, after seeing that the forecast says the same and touches nothing."""
    before = stores.xorb_files(site)
    foreseen = foresee(site.engine, site.blobs, now=site.clock())
    assert stores.xorb_files(site) == before
    done = sweep(site.engine, site.blobs, now=site.clock())
    assert done == foreseen
    return done


def test_what_a_file_refers_to_stays_for_ever(site: Site, clock: HeldClock) -> None:
    stores.upload(site, "f", PIECES)
    stores.write(site, "g", noise(100_000))
    clock.forward(days=4000)
    assert swept(site) == Swept(0, 0, 0, 0, 0)
    assert stores.read(site, "f") == b"".join(PIECES)


def test_a_deleted_files_bytes_go_after_three_weeks_and_its_hash_opens_nothing_more(
    site: Site, clock: HeldClock
) -> None:
    digest = stores.upload(site, "f", PIECES)
    stores.upload(site, "g", OTHERS)
    stores.delete(site, "f")
    clock.forward(days=21)
    assert swept(site) == Swept(0, 0, 0, 0, 0)
    clock.forward(days=1, hours=1)
    done = swept(site)
    assert (done.contents, done.xorbs, done.files) == (1, 1, 1)
    assert done.freed_bytes == sum(len(piece) + 8 for piece in PIECES)
    assert len(stores.xorb_files(site)) == 1
    assert not stores.add_file(site, "f", digest)
    stores.upload(site, "f", PIECES)
    assert stores.read(site, "f") == b"".join(PIECES)


def test_a_sweep_that_is_over_ends_after_its_page_and_the_next_one_finishes(
    site: Site, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.local.upserts.IN_LIMIT", 1)
    for name, pieces in (("f", PIECES), ("g", OTHERS)):
        stores.upload(site, name, pieces)
        stores.delete(site, name)
    clock.forward(days=23)
    looked = iter((False, True, True))
    done = sweep(site.engine, site.blobs, now=site.clock(), takes_strangers=False, is_over=lambda: next(looked))
    assert (done.contents, done.xorbs, done.files) == (1, 0, 0)
    done = swept(site)
    assert (done.contents, done.xorbs, done.files) == (1, 2, 2)


def test_a_xorb_that_another_file_is_built_on_stays(site: Site, clock: HeldClock) -> None:
    stores.upload(site, "f", PIECES)
    stores.write(site, "kept", b"".join(PIECES))
    stores.delete(site, "f")
    clock.forward(days=30)
    swept(site)
    assert stores.read(site, "kept") == b"".join(PIECES)


def test_a_mention_keeps_an_orphan_for_three_more_weeks(site: Site, clock: HeldClock) -> None:
    name = stores.send_xorb(site, PIECES)
    clock.forward(days=20)
    stores.send_xorb(site, PIECES)
    clock.forward(days=20)
    assert swept(site).xorbs == 0
    digest = stores.send_shard(site, PIECES)
    clock.forward(days=20)
    assert swept(site) == Swept(0, 0, 0, 0, 0)
    assert stores.add_file(site, "f", digest)
    clock.forward(days=100)
    assert swept(site) == Swept(0, 0, 0, 0, 0)
    assert stores.holds_xorb(site, name)


def test_a_shard_that_comes_after_the_sweep_is_refused_as_a_whole(site: Site, clock: HeldClock) -> None:
    name = stores.send_xorb(site, PIECES)
    clock.forward(days=30)
    assert swept(site).xorbs == 1
    assert not stores.holds_xorb(site, name)
    with pytest.raises(InvalidXet):
        stores.send_shard(site, PIECES)
    with reading(site.engine) as session:
        assert session.get(ContentRow, name) is None


def test_an_upload_under_way_wins_against_the_sweep(site: Site, clock: HeldClock) -> None:
    """The sweep starts while an upload has mentioned the xorb and not yet committed: it waits, and lets it be."""
    name = stores.send_xorb(site, PIECES)
    clock.forward(days=30)
    done: list[Swept] = []
    sweeper = threading.Thread(target=lambda: done.append(sweep(site.engine, site.blobs, now=site.clock())))
    with writing(site.engine) as session:
        xorbs.mention(session, [name], now=site.clock())
        sweeper.start()
        sweeper.join(0.3)
        assert sweeper.is_alive()
    sweeper.join(30)
    assert done[0].xorbs == 0
    assert stores.holds_xorb(site, name)
    assert len(stores.xorb_files(site)) == 1


def test_a_file_without_a_row_goes_and_one_that_is_being_stored_does_not(site: Site) -> None:
    orphan = "ab" * 32
    path = site.blobs.path(orphan)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"left by a crash")
    kept = stores.send_xorb(site, PIECES)
    assert swept(site) == Swept(0, 0, 1, 0, 15)
    assert [file.name for file in stores.xorb_files(site)] == [kept]
    with reading(site.engine) as session:
        assert session.get(XorbRow, orphan) is None
        assert xorbs.find_tables(session, {from_text(kept)})


def test_a_sweep_that_takes_no_strangers_leaves_files_that_no_row_named(site: Site, clock: HeldClock) -> None:
    """As the server's own does: to one that was started with an empty database every file is such."""
    path = site.blobs.path("ab" * 32)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"named by another database")
    stores.send_xorb(site, PIECES)
    clock.forward(days=30)
    done = sweep(site.engine, site.blobs, now=site.clock(), takes_strangers=False)
    assert (done.xorbs, done.files) == (1, 1)
    assert stores.xorb_files(site) == [path]


def test_a_broken_upload_goes_after_a_day(site: Site) -> None:
    folder = site.blobs.folder / "incoming"
    folder.mkdir(parents=True)
    old, fresh = folder / "old", folder / "fresh"
    for path in (old, fresh):
        path.write_bytes(b"half")
    day_ago = old.stat().st_mtime - 86_500
    os.utime(old, (day_ago, day_ago))
    assert swept(site) == Swept(0, 0, 0, 1, 4)
    assert list(folder.iterdir()) == [fresh]


def test_a_sweep_that_dies_between_rows_and_files_loses_nothing_and_the_next_one_finishes(
    site: Site, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    stores.upload(site, "kept", OTHERS)
    stores.send_xorb(site, PIECES)
    clock.forward(days=30)

    def die(path: Path, missing_ok: bool = False) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", die)
        with pytest.raises(KeyboardInterrupt):
            sweep(site.engine, site.blobs, now=site.clock())
    assert len(stores.xorb_files(site)) == 2
    assert swept(site).files == 1
    assert stores.read(site, "kept") == b"".join(OTHERS)


def test_the_command_says_what_it_freed(site: Site) -> None:
    where = ["--data", str(site.settings.data), "--challenge", str(site.settings.challenge)]
    said = CliRunner().invoke(app, ["sweep", "--dry-run", *where]).stdout
    assert said == "Would remove 0 contents, 0 xorbs and 0 broken uploads; 0 files, 0 bytes freed.\n"
    assert CliRunner().invoke(app, ["sweep", *where]).stdout.startswith("Removed 0 contents")
