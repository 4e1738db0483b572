"""Every kind of damage is found, set aside, and healed by uploading the file again."""

import errno
from collections.abc import Callable
from typing import BinaryIO

import pytest
import sqlalchemy
from click.testing import Result
from sqlmodel import Session, select
from typer.testing import CliRunner

from storage.buckets import Copy
from storage.database import reading, writing
from storage.errors import Corrupt
from storage.local.blobs import Blobs
from storage.local.buckets import LocalBuckets
from storage.local.rows import ContentRow, ContentXorbRow, FileRow, XorbRow
from storage.site import Site
from tests.storage.local import stores
from tests.storage.xet.builders import noise
from web.commands.store import app

PIECES = [noise(5000, 1), noise(5000, 2)]
OTHERS = [noise(5000, 3), noise(5000, 4)]


@pytest.fixture(autouse=True)
def bucket(site: Site) -> None:
    stores.make_bucket(site)
    stores.upload(site, "f", PIECES)
    stores.write(site, "g", b"".join(OTHERS))
    stores.write(site, "empty", b"")


def run(site: Site, *arguments: str) -> Result:
    """Run a command of the operator."""
    command = [*arguments, "--data", str(site.settings.data), "--challenge", str(site.settings.challenge)]
    return CliRunner().invoke(app, command)


def fsck(site: Site, *options: str) -> Result:
    done = run(site, "fsck", *options)
    assert isinstance(done.exception, SystemExit | None), done.exception
    return done


def flip(site: Site, at: int = 100) -> str:
    """Flip a bit in the bytes of `f`; return the xorb's name."""
    name = stores.xorb(PIECES)[2]
    path = site.blobs.path(stores.to_text(name))
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    return path.name


def test_an_undamaged_store_is_clean(site: Site) -> None:
    done = fsck(site)
    assert (done.exit_code, done.stdout) == (0, "0 faults in 2 xorbs (20024 bytes), 2 contents, 3 files.\n")


def cut(site: Site, session: Session) -> None:
    (path, *_) = stores.xorb_files(site)
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(site: Site, session: Session) -> None:
    (path, *_) = stores.xorb_files(site)
    path.write_bytes(path.read_bytes() + b"XETBLOB" + b"\1")


def lose(site: Site, session: Session) -> None:
    stores.xorb_files(site)[0].unlink()


def change_table(site: Site, session: Session) -> None:
    row = session.get_one(XorbRow, stores.xorb_files(site)[0].name)
    row.chunks = bytes(32) + row.chunks[32:]
    session.add(row)


def drop_xorb(site: Site, session: Session) -> None:
    session.delete(session.get_one(XorbRow, stores.xorb_files(site)[0].name))


def change_terms(site: Site, session: Session) -> None:
    content = stores.to_text(stores.claim(stores.xorb(PIECES)[1]).digest)
    row = session.get_one(ContentRow, content)
    row.terms = row.terms[:-1]
    session.add(row)


def shrink_content(site: Site, session: Session) -> None:
    content = stores.to_text(stores.claim(stores.xorb(PIECES)[1]).digest)
    row = session.get_one(ContentRow, content)
    row.size -= 1
    session.add(row)


def drop_content(site: Site, session: Session) -> None:
    content = stores.to_text(stores.claim(stores.xorb(PIECES)[1]).digest)
    session.delete(session.get_one(ContentRow, content))


def grow_file(site: Site, session: Session) -> None:
    store = LocalBuckets(session, site.blobs)
    row = session.get_one(FileRow, (store.id_of(stores.NAME), "f"))
    row.size += 1
    session.add(row)


def forget_reference(site: Site, session: Session) -> None:
    content = stores.to_text(stores.claim(stores.xorb(PIECES)[1]).digest)
    xorb = stores.to_text(stores.xorb(PIECES)[2])
    session.delete(session.get_one(ContentXorbRow, (xorb, content)))


DAMAGES: list[tuple[Callable[[Site, Session], None], str]] = [
    (cut, "ends inside a chunk"),
    (lengthen, "length is not the recorded one"),
    (lose, "its file is missing"),
    (change_table, "table of chunks"),
    (drop_xorb, "not stored"),
    (change_terms, "cut short"),
    (shrink_content, "do not add up"),
    (drop_content, "not stored"),
    (grow_file, "10001 bytes"),
    (forget_reference, "without a note"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
def test_every_kind_of_damage_is_found(site: Site, damage: Callable[[Site, Session], None], words: str) -> None:
    with writing(site.engine) as session:
        damage(site, session)
    done = fsck(site)
    assert done.exit_code == 1
    assert words in done.stdout
    assert fsck(site).stdout == done.stdout, "a check changes nothing"


def test_repair_sets_a_damaged_xorb_aside_and_an_upload_heals_it(site: Site) -> None:
    before = site.blobs.generation
    name = flip(site)
    done = fsck(site, "--repair")
    assert done.exit_code == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"xorb {name}: ")
    assert lines[1].startswith("content ")
    assert lines[2].startswith(f"file {stores.NAME}: f: its content ")
    assert site.blobs.generation != before
    assert (site.blobs.folder / "quarantine" / name).is_file()
    assert not site.blobs.path(name).exists()
    assert not stores.holds_xorb(site, name)
    with pytest.raises(Corrupt, match="damaged or lost"):
        stores.read(site, "f")
    assert stores.read(site, "g") == b"".join(OTHERS)
    assert fsck(site).stdout.startswith(f"file {stores.NAME}: f: its content ")
    stores.upload(site, "f", PIECES)
    assert stores.read(site, "f") == b"".join(PIECES)
    assert fsck(site).exit_code == 0


def test_a_file_that_was_set_aside_can_be_deleted_and_replaced(site: Site) -> None:
    stores.upload(site, "twin", PIECES)
    flip(site)
    fsck(site, "--repair")
    stores.delete(site, "f")
    stores.write(site, "twin", b"other")
    assert stores.read(site, "twin") == b"other"
    assert fsck(site).exit_code == 0


def test_a_file_that_was_set_aside_is_not_copied(site: Site) -> None:
    flip(site)
    fsck(site, "--repair")

    with pytest.raises(Corrupt), writing(site.engine) as session:
        LocalBuckets(session, site.blobs).apply(stores.NAME, [Copy("h", stores.NAME, "f")])
    with reading(site.engine) as session:
        assert LocalBuckets(session, site.blobs).stat(stores.NAME, "h") is None


def test_repair_notes_forgotten_references_anew(site: Site) -> None:
    with writing(site.engine) as session:
        forget_reference(site, session)
    assert fsck(site, "--repair").exit_code == 1
    assert fsck(site).exit_code == 0


def test_the_command_shows_and_begins_generations(site: Site) -> None:
    def generation(*options: str) -> str:
        return run(site, "generation", *options).stdout.strip()

    first = generation()
    assert first == site.blobs.generation
    assert generation("--new") == site.blobs.generation != first


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.EIO])
def test_what_can_not_be_read_now_is_told_and_never_repaired(
    site: Site, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(blobs: Blobs, digest: str) -> BinaryIO:
        raise OSError(number, "not now")

    before = site.blobs.generation
    with monkeypatch.context() as failing:
        failing.setattr(Blobs, "open", fail)
        done = fsck(site, "--repair")
    assert done.exit_code == 1
    assert done.stdout.count("could not be read: not now") == 2
    assert site.blobs.generation == before
    assert fsck(site).exit_code == 0, "nothing was set aside"


def test_a_store_that_is_not_mounted_is_not_repaired_away(site: Site) -> None:
    xorbs = site.blobs.folder / "xorbs"
    elsewhere = xorbs.rename(site.blobs.folder / "elsewhere")
    refused = fsck(site, "--repair")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"2 of 2 xorbs are not in {xorbs}: ")
    elsewhere.rename(xorbs)
    assert fsck(site).exit_code == 0


def test_missing_xorbs_are_repaired_if_they_are_few_or_if_the_operator_insists(site: Site) -> None:
    stores.xorb_files(site)[0].unlink()
    assert "its file is missing" in fsck(site, "--repair").stdout
    stores.xorb_files(site)[0].unlink()
    assert fsck(site, "--repair").exit_code == 2
    assert "its file is missing" in fsck(site, "--repair-missing").stdout
    with reading(site.engine) as session:
        assert session.exec(select(XorbRow)).all() == []


def test_a_store_of_nothing_is_repaired_into_nothing(site: Site) -> None:
    for path in ("f", "g", "empty"):
        stores.delete(site, path)
    with writing(site.engine) as session:
        for table in (ContentXorbRow, ContentRow, XorbRow):
            session.execute(sqlalchemy.delete(table))
    assert fsck(site, "--repair").exit_code == 0
