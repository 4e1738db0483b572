"""The unmodified `hf` command works against a real server process, and what it uploaded outlives that process."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

from agents import tokens
from agents.rows import UserRow
from storage.clock import utc_now
from storage.database import writing
from storage.settings import Settings
from storage.site import open_site
from tests.conftest import eventually
from tests.storage.xet.builders import noise

HF = Path(sys.executable).with_name("hf")
BUCKET = "hf://buckets/race/tiny-a1"
_ROOT = Path(__file__).resolve().parents[3]
AServer = TypeVar("AServer", bound="Server")


@dataclass
class Server:
    """A server process that can be ended and started again on the same data and port."""

    settings: Settings
    port: int
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        script = Path(__file__).with_name("serve_hub.py")
        command = [sys.executable, str(script), str(self.settings.data), str(self.settings.challenge), str(self.port)]
        environment = os.environ | {"PYTHONPATH": str(_ROOT)}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        eventually(self._answers, within_s=90, what="the server's first answer")

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self.process:
            self.process.send_signal(how)
            self.process.wait(20)
            self.process = None

    def _answers(self) -> bool:
        assert self.process
        assert self.process.poll() is None, self.log.read_text()
        try:
            with urlopen(f"{self.url}/api/buckets/race", timeout=5) as answer:
                return bool(answer.status == 200)
        except URLError:
            return False


@dataclass
class Client:
    """The `hf` command with a home, and so a cache, of its own."""

    server: Server
    token: str
    home: Path
    program: Path = HF

    def run(self, *arguments: str | Path, ok: bool = True) -> subprocess.CompletedProcess[bytes]:
        environment = {
            "PATH": os.environ["PATH"],
            "HF_ENDPOINT": self.server.url,
            "HF_TOKEN": self.token,
            "HF_HOME": str(self.home),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_UPDATE_CHECK": "1",
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            env=environment,
            capture_output=True,
            timeout=120,
            cwd=self.home.parent,
        )
        assert (done.returncode == 0) is ok, (done.stdout + done.stderr).decode()
        return done

    def text(self, *arguments: str | Path, ok: bool = True) -> str:
        done = self.run(*arguments, ok=ok)
        return (done.stdout + done.stderr).decode()

    def buckets(self, *arguments: str | Path, ok: bool = True) -> str:
        return self.text("buckets", *arguments, ok=ok)


@contextmanager
def running(kind: type[AServer], settings: Settings, folder: Path) -> Iterator[AServer]:
    """Serve a new site on a free port until the block ends; no fault may be in its log then."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    made = kind(settings, port, folder / "server.log")
    open_site(settings).engine.dispose()
    try:
        made.start()
        yield made
    finally:
        made.stop(signal.SIGKILL)
    assert "Traceback" not in made.log.read_text()


@pytest.fixture
def server(settings: Settings, tmp_path: Path) -> Iterator[Server]:
    with running(Server, settings, tmp_path) as made:
        yield made


def client(server: Server, tmp_path: Path, name: str) -> Client:
    site = open_site(server.settings)
    with writing(site.engine) as session:
        session.add(UserRow(name=name, created_at=utc_now()))
        session.flush()
        token = tokens.issue(session, name, secret=site.secret, now=utc_now())
    site.engine.dispose()
    return Client(server, token, tmp_path / f"home-{name}")


@pytest.fixture
def alice(server: Server, tmp_path: Path) -> Client:
    made = client(server, tmp_path, "alice")
    made.buckets("create", "race/tiny-a1")
    return made


def fill(folder: Path) -> dict[str, bytes]:
    contents = {
        "big.bin": noise(20_000_000),
        "numbers.txt": b"".join(b"%d\n" % n for n in range(200_000)),
        "empty": b"",
        ".hidden": b"dot",
        "sub/sp ace é.txt": b"hello\n",
        "sub/deeper/one": b"1",
    }
    for path, data in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return contents


def contents_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_whoami_names_the_user(alice: Client) -> None:
    assert "alice" in alice.text("auth", "whoami")


def test_a_file_goes_up_and_comes_down(alice: Client, tmp_path: Path) -> None:
    up, down = tmp_path / "up é.bin", tmp_path / "down.bin"
    up.write_bytes(noise(20_000_000))
    alice.buckets("cp", up, f"{BUCKET}/d é/up 1.bin")
    alice.buckets("cp", f"{BUCKET}/d é/up 1.bin", down)
    assert down.read_bytes() == up.read_bytes()
    assert alice.run("buckets", "cp", f"{BUCKET}/d é/up 1.bin", "-").stdout == up.read_bytes()
    assert "20000000  " in alice.buckets("list", "race/tiny-a1", "-R")


def test_sync_goes_both_ways_and_deletes_where_told(alice: Client, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    contents = fill(here)
    assert "Uploads: 6" in alice.buckets("sync", here, f"{BUCKET}/p")
    assert "Nothing to sync" in alice.buckets("sync", here, f"{BUCKET}/p")
    alice.buckets("sync", f"{BUCKET}/p", there)
    assert contents_of(there) == contents
    listed = alice.buckets("list", "race/tiny-a1", "-R")
    assert all(f"p/{path}" in listed for path in contents)
    (here / "numbers.txt").unlink()
    (here / "new").write_bytes(b"new")
    assert "Deletes: 1" in alice.buckets("sync", here, f"{BUCKET}/p", "--delete")
    alice.buckets("sync", f"{BUCKET}/p", there, "--delete")
    assert contents_of(there) == contents_of(here)
    alice.buckets("rm", "race/tiny-a1/p", "--recursive", "-y")
    assert "p/" not in alice.buckets("list", "race/tiny-a1", "-R")


def test_everything_acknowledged_is_there_after_the_server_was_killed(
    alice: Client, server: Server, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    contents = fill(here)
    alice.buckets("sync", here, f"{BUCKET}/p")
    server.stop(signal.SIGKILL)
    server.start()
    alice.buckets("sync", f"{BUCKET}/p", there)
    assert contents_of(there) == contents
    assert "Nothing to sync" in alice.buckets("sync", here, f"{BUCKET}/p")
    alice.buckets("sync", here, f"{BUCKET}/again")
    alice.buckets("rm", "race/tiny-a1/p/big.bin", "-y")
    assert alice.run("buckets", "cp", f"{BUCKET}/again/big.bin", "-").stdout == contents["big.bin"]


def test_a_fresh_client_resends_only_what_this_bucket_lacks(alice: Client, server: Server, tmp_path: Path) -> None:
    up = tmp_path / "up.bin"
    up.write_bytes(noise(3_000_000))
    alice.buckets("cp", up, f"{BUCKET}/first")
    alice.home = tmp_path / "another-home"
    alice.buckets("cp", up, f"{BUCKET}/second")
    alice.buckets("create", "race/tiny-a2")
    alice.buckets("cp", up, "hf://buckets/race/tiny-a2/third")
    for path in (f"{BUCKET}/second", "hf://buckets/race/tiny-a2/third"):
        assert alice.run("buckets", "cp", path, "-").stdout == up.read_bytes()


def test_a_store_that_started_over_takes_the_same_file_from_the_same_client(
    alice: Client, server: Server, tmp_path: Path
) -> None:
    up = tmp_path / "up.bin"
    up.write_bytes(noise(300_000))
    alice.buckets("cp", up, f"{BUCKET}/a")
    server.stop()
    site = open_site(server.settings)
    with writing(site.engine) as session:
        for table in ("files", "claims", "contents", "xorbs"):
            session.connection().exec_driver_sql(f"DELETE FROM {table}")
    site.engine.dispose()
    (server.settings.data / "store" / "generation").unlink()
    server.start()
    alice.buckets("cp", up, f"{BUCKET}/a")
    assert alice.run("buckets", "cp", f"{BUCKET}/a", "-").stdout == up.read_bytes()


def test_refusals_are_readable(alice: Client, server: Server, tmp_path: Path) -> None:
    assert "file not found" in alice.buckets("rm", "race/tiny-a1/none", "-y", ok=False)
    assert "reserved" in alice.buckets("create", "race/tiny-audit", ok=False)
    assert "not found" in alice.buckets("list", "race/tiny-none", ok=False)
    up = tmp_path / "up"
    up.write_bytes(b"x")
    alice.buckets("cp", up, f"{BUCKET}/up")
    bob = client(server, tmp_path, "bob")
    bob.buckets("cp", up, f"{BUCKET}/up", ok=False)
    assert "owner" in bob.buckets("rm", "race/tiny-a1/up", "-y", ok=False)
    assert bob.run("buckets", "cp", f"{BUCKET}/up", "-").stdout == b"x"
    alice.buckets("create", "priv", "--private")
    alice.buckets("cp", f"{BUCKET}/", "hf://buckets/alice/priv/all/")
    bob.buckets("cp", "hf://buckets/alice/priv/all/up", "-", ok=False)
    assert alice.run("buckets", "cp", "hf://buckets/alice/priv/all/up", "-").stdout == b"x"
    alice.token = "pdk_wrong"
    assert "Invalid" in alice.text("auth", "whoami", ok=False) or "not valid" in alice.text("auth", "whoami", ok=False)


def test_a_damaged_xorb_never_reaches_a_user(alice: Client, server: Server, tmp_path: Path) -> None:
    up, down = tmp_path / "up.bin", tmp_path / "down.bin"
    up.write_bytes(noise(1_000_000))
    alice.buckets("cp", up, f"{BUCKET}/up.bin")
    (path,) = [path for path in (server.settings.data / "store" / "xorbs").rglob("*") if path.is_file()]
    raw = bytearray(path.read_bytes())
    raw[9] ^= 1
    path.write_bytes(raw)
    request = Request(f"{server.url}/buckets/race/tiny-a1/resolve/up.bin")
    with pytest.raises(URLError, match="410"):
        urlopen(request, timeout=20)
    alice.buckets("cp", f"{BUCKET}/up.bin", down, ok=False)
    assert not down.exists() or down.read_bytes() == b""
