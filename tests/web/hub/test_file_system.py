"""The Hub's file system for Python programs reads and writes buckets here as it does there."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfFileSystem

from agents import tokens
from agents.rows import UserRow
from storage.database import writing
from storage.settings import Settings
from storage.site import open_site
from tests.conftest import CHALLENGE
from tests.storage.xet.builders import noise
from tests.web.hub.listening import listening
from tests.web.hub.serve_hub import hub_app

ROOT = "buckets/alice/fs"
DATA = noise(300_000)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """Serve a site; give its address and a token for each of two people."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "challenge.toml").write_text(CHALLENGE)
    site = open_site(Settings(data=folder / "data", challenge=folder / "challenge.toml"))
    held = {}
    with writing(site.engine) as session:
        for name in ("alice", "bob"):
            session.add(UserRow(name=name, created_at=site.clock()))
            session.flush()
            held[name] = tokens.issue(session, name, secret=site.secret, now=site.clock())
    with pytest.MonkeyPatch.context() as patch, listening(hub_app(site)) as port:
        for name in ("HF_HOME", "HF_XET_CACHE"):
            patch.setenv(name, str(folder / "home"))
        yield f"http://127.0.0.1:{port}", held
    site.engine.dispose()


@pytest.fixture(scope="module")
def fs(address: tuple[str, dict[str, str]]) -> HfFileSystem:
    url, held = address
    made = HfFileSystem(endpoint=url, token=held["alice"], use_listings_cache=False, skip_instance_cache=True)
    made._api.create_bucket("alice/fs", private=True)
    made.pipe_file(f"{ROOT}/d é/data.bin", DATA)
    made.pipe_file(f"{ROOT}/d é/deeper/x.txt", b"hello")
    made.pipe_file(f"{ROOT}/empty", b"")
    return made


def test_what_was_written_is_read_whole_and_by_range(fs: HfFileSystem) -> None:
    assert fs.cat_file(f"{ROOT}/d é/data.bin") == DATA
    assert fs.cat_file(f"{ROOT}/d é/data.bin", start=69_990, end=140_000) == DATA[69_990:140_000]
    assert fs.cat_file(f"{ROOT}/d é/data.bin", start=-5) == DATA[-5:]
    assert fs.cat_file(f"{ROOT}/empty") == b""
    with fs.open(f"{ROOT}/d é/data.bin", "rb", block_size=50_000) as file:
        file.seek(200_000)
        assert file.read(10) == DATA[200_000:200_010]


def test_files_and_folders_are_listed_and_described(fs: HfFileSystem) -> None:
    assert fs.ls(ROOT, detail=False) == [f"{ROOT}/d é", f"{ROOT}/empty"]
    assert fs.find(f"{ROOT}/d é") == [f"{ROOT}/d é/data.bin", f"{ROOT}/d é/deeper/x.txt"]
    assert fs.glob(f"{ROOT}/**/*.txt") == [f"{ROOT}/d é/deeper/x.txt"]
    assert (fs.info(f"{ROOT}/d é/data.bin")["size"], fs.info(f"{ROOT}/d é")["type"]) == (300_000, "directory")
    assert fs.du(ROOT) == 300_005
    assert fs.isfile(f"{ROOT}/empty")
    assert fs.isdir(f"{ROOT}/d é/deeper")
    assert not fs.exists(f"{ROOT}/none")


def test_files_are_written_copied_and_removed(fs: HfFileSystem, tmp_path: Path) -> None:
    with fs.open(f"{ROOT}/w/new.txt", "wb") as file:
        file.write(b"first ")
        file.write(b"second")
    fs.cp_file(f"{ROOT}/w/new.txt", f"{ROOT}/w/copy.txt")
    assert fs.cat(f"{ROOT}/w/copy.txt") == b"first second"
    (tmp_path / "up").write_bytes(DATA)
    fs.put_file(str(tmp_path / "up"), f"{ROOT}/w/up")
    fs.get_file(f"{ROOT}/w/up", str(tmp_path / "down"))
    assert (tmp_path / "down").read_bytes() == DATA
    fs.rm_file(f"{ROOT}/w/new.txt")
    assert fs.find(f"{ROOT}/w") == [f"{ROOT}/w/copy.txt", f"{ROOT}/w/up"]
    fs.rm(f"{ROOT}/w", recursive=True)
    assert not fs.exists(f"{ROOT}/w")


def test_another_persons_private_files_are_not_there(fs: HfFileSystem, address: tuple[str, dict[str, str]]) -> None:
    url, held = address
    bobs = HfFileSystem(endpoint=url, token=held["bob"], use_listings_cache=False, skip_instance_cache=True)
    for path in (f"{ROOT}/empty", ROOT, "buckets/alice/absent"):
        assert not bobs.exists(path)
        with pytest.raises(FileNotFoundError):
            bobs.ls(path)
    with pytest.raises(FileNotFoundError):
        bobs.cat_file(f"{ROOT}/empty")
    with pytest.raises(FileNotFoundError):
        bobs.pipe_file(f"{ROOT}/mine", b"x")
    assert not fs.exists(f"{ROOT}/mine")
