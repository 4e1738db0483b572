"""The oldest and the newest client that we speak to do all that a bucket is for."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.settings import Settings
from storage.site import open_site
from tests.conftest import CHALLENGE
from tests.storage.xet.builders import noise
from tests.web.hub.test_hf_client import HF, Client, Server, client, contents_of

_ROOT = Path(__file__).resolve().parents[3]
OLDEST = _ROOT / ".venv-clients" / "oldest" / "bin" / "hf"
PROGRAMS = {"oldest": (OLDEST, "1.7.0", "1.4.3"), "newest": (HF, "2.4.", "1.8.")}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served")
    challenge = folder / "challenge.toml"
    challenge.write_text(CHALLENGE)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = Settings(data=folder / "data", challenge=challenge)
    made = Server(settings, port, folder / "server.log")
    open_site(settings).engine.dispose()
    made.start()
    yield made
    made.stop(signal.SIGKILL)
    assert "Traceback" not in made.log.read_text()


@pytest.fixture(params=PROGRAMS)
def hf(request: pytest.FixtureRequest, server: Server, tmp_path: Path) -> Client:
    """The command with an account and a bucket `{account}/b`."""
    program, hub_version, xet_version = PROGRAMS[request.param]
    assert program.is_file(), "the oldest client is missing: make old-clients"
    asked = "import importlib.metadata as m; print(m.version('huggingface_hub'), m.version('hf_xet'))"
    versions = subprocess.run([program.with_name("python"), "-c", asked], capture_output=True, text=True, check=True)
    hub, xet = versions.stdout.split()
    assert hub.startswith(hub_version)
    assert xet.startswith(xet_version)
    user = f"{request.param}-{abs(hash(request.node.name)) % 10**6}"
    made = client(server, tmp_path, user)
    made.program = program
    made.buckets("create", f"{user}/b")
    return made


def user_of(hf: Client) -> str:
    return hf.home.name.removeprefix("home-")


def bucket(hf: Client, path: str = "") -> str:
    return f"hf://buckets/{user_of(hf)}/b/{path}".rstrip("/")


def is_oldest(hf: Client) -> bool:
    return hf.program == OLDEST


def test_files_go_up_and_come_down(hf: Client, tmp_path: Path) -> None:
    data, up, down = noise(5_000_000), tmp_path / "up é.bin", tmp_path / "down.bin"
    up.write_bytes(data)
    hf.buckets("cp", up, bucket(hf, "d é/up 1.bin"))
    hf.buckets("cp", bucket(hf, "d é/up 1.bin"), down)
    assert down.read_bytes() == data
    assert hf.run("buckets", "cp", bucket(hf, "d é/up 1.bin"), "-").stdout == data
    hf.buckets("cp", up, bucket(hf, "again.bin"))
    listed = hf.buckets("list", f"{user_of(hf)}/b", "-R")
    assert "5000000" in listed.replace("5.0 MB", "5000000")
    assert "d é/up 1.bin" in listed
    assert "again.bin" in hf.buckets("list", f"{user_of(hf)}/b", "--tree")
    hf.buckets("rm", f"{user_of(hf)}/b/d é/up 1.bin", "-y")
    assert "up 1.bin" not in hf.buckets("list", f"{user_of(hf)}/b", "-R")


def test_sync_goes_both_ways_and_deletes_where_told(hf: Client, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    files = {"big.bin": noise(3_000_000), "empty": b"", ".hidden": b"dot", "a/b c/é.txt": b"x\n", "same": b"dot"}
    for path, data in files.items():
        (here / path).parent.mkdir(parents=True, exist_ok=True)
        (here / path).write_bytes(data)
    hf.buckets("sync", here, bucket(hf, "p"))
    hf.buckets("sync", bucket(hf, "p"), there)
    assert contents_of(there) == files
    (here / "same").unlink()
    (here / "same").mkdir()
    (here / "same" / "now a folder").write_bytes(b"y")
    (here / "empty").rename(here / "EMPTY")
    hf.buckets("sync", here, bucket(hf, "p"), "--delete")
    hf.buckets("sync", bucket(hf, "p"), there, "--delete", ok=False)  # its own disk has a file in the folder's place
    (there / "same").unlink()
    hf.buckets("sync", bucket(hf, "p"), there, "--delete")
    assert contents_of(there) == contents_of(here)
    hf.buckets("rm", f"{user_of(hf)}/b/p", "--recursive", "-y")
    assert "big.bin" not in hf.buckets("list", f"{user_of(hf)}/b", "-R")


def test_what_a_link_leads_to_outside_is_never_a_path_of_the_bucket(hf: Client, tmp_path: Path) -> None:
    here, outside = tmp_path / "here", tmp_path / "outside"
    for folder in (here, outside):
        folder.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (here / "plain").write_bytes(b"plain")
    (here / "folder").symlink_to(outside)
    (here / "up").symlink_to("..")
    hf.buckets("sync", here, bucket(hf, "p"))
    there = tmp_path / "there"
    hf.buckets("sync", bucket(hf, "p"), there)
    assert contents_of(there) == {"plain": b"plain"}
    assert not any(path.is_symlink() for path in there.rglob("*"))


def test_buckets_are_described_moved_and_deleted(hf: Client, tmp_path: Path) -> None:
    user = user_of(hf)
    assert user in hf.text("auth", "whoami")
    assert f"{user}/b" in hf.buckets("info", f"{user}/b")
    assert f"{user}/b" in hf.buckets("list")
    hf.buckets("create", f"{user}/b", "--exist-ok")
    assert "exists already" in hf.buckets("create", f"{user}/b", ok=False)
    hf.buckets("move", f"{user}/b", f"{user}/c")
    assert "not found" in hf.buckets("info", f"{user}/b", ok=False).lower()
    hf.buckets("delete", f"{user}/c", "-y")
    assert f"{user}/c" not in hf.buckets("list")
    hf.buckets("delete", f"{user}/c", "-y", "--missing-ok")


def test_a_bucket_is_copied_into_another_and_hidden(hf: Client, tmp_path: Path) -> None:
    user, up = user_of(hf), tmp_path / "up"
    up.write_bytes(b"data")
    hf.buckets("cp", up, bucket(hf, "d/up"))
    hf.buckets("create", f"{user}/c", "--private")
    if is_oldest(hf):  # it has neither of the two
        assert "not supported" in hf.buckets("cp", bucket(hf, "d/"), f"hf://buckets/{user}/c/", ok=False)
        return
    hf.buckets("cp", bucket(hf, "d/"), f"hf://buckets/{user}/c/all/")
    assert hf.run("buckets", "cp", f"hf://buckets/{user}/c/all/up", "-").stdout == b"data"
    hf.buckets("settings", f"{user}/b", "--private")
    assert "rivate" in hf.buckets("info", f"{user}/b")
