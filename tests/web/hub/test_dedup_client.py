"""The unmodified client sends only what the store lacks, measured at the server in bytes of xorbs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.settings import Settings
from storage.site import open_site
from tests.conftest import eventually
from tests.storage.xet.builders import noise
from tests.web.hub.test_hf_client import BUCKET, Client, Server, client, running

_ROOT = Path(__file__).resolve().parents[3]
SIZE = 24_000_000


class Counted(Server):
    """A server that notes every request."""

    def start(self) -> None:
        script = Path(__file__).with_name("serve_counted.py")
        paths = [str(path) for path in (script, self.settings.data, self.settings.challenge)]
        command = [sys.executable, *paths, str(self.port), str(self.log.with_suffix(".requests"))]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(_ROOT)}, stderr=log)
        eventually(self._answers, what="the server's first answer")

    def requests(self) -> list[list[str]]:
        """Return method, path, status and bytes of every request so far."""
        log = self.log.with_suffix(".requests")
        return [line.split(" ") for line in log.read_text().splitlines()] if log.exists() else []

    def xorb_bytes(self) -> int:
        """Sum the bytes of all xorbs that were sent so far."""
        return sum(int(size) for method, path, _, size in self.requests() if method == "POST" and "/v1/xorbs/" in path)


@pytest.fixture
def server(settings: Settings, tmp_path: Path) -> Iterator[Counted]:
    with running(Counted, settings, tmp_path) as made:
        yield made


@pytest.fixture
def alice(server: Counted, tmp_path: Path) -> Client:
    made = client(server, tmp_path, "alice")
    made.buckets("create", "race/tiny-a1")
    return made


def sent(server: Counted, who: Client, up: Path, target: str, home: Path) -> int:
    """Upload with a cache that knows nothing, check what arrived, and return the bytes of xorbs that took."""
    who.home = home
    before = server.xorb_bytes()
    who.buckets("cp", up, target)
    taken = server.xorb_bytes() - before
    assert who.run("buckets", "cp", target, "-").stdout == up.read_bytes()
    return taken


def test_what_is_there_is_not_sent_again_and_an_insertion_costs_little(
    alice: Client, server: Counted, tmp_path: Path
) -> None:
    up, changed = tmp_path / "up.bin", tmp_path / "changed.bin"
    data = noise(SIZE)
    up.write_bytes(data)
    changed.write_bytes(data[: SIZE // 3] + b"!" + data[SIZE // 3 :])
    first = sent(server, alice, up, f"{BUCKET}/first", tmp_path / "h1")
    assert first > SIZE
    assert sent(server, alice, up, f"{BUCKET}/second", tmp_path / "h2") == 0
    inserted = sent(server, alice, changed, f"{BUCKET}/changed", tmp_path / "h3")
    print(f"first {first}, again 0, with a byte inserted {inserted} = {inserted / SIZE:.2%}")
    assert 0 < inserted < 0.02 * SIZE
    alice.buckets("create", "race/tiny-a2", "--private")
    assert sent(server, alice, up, "hf://buckets/race/tiny-a2/third", tmp_path / "h4") == 0


def test_a_public_file_of_anothers_is_not_sent_and_a_private_one_is(
    alice: Client, server: Counted, tmp_path: Path
) -> None:
    public, private, small = (tmp_path / name for name in ("public", "private", "small"))
    public.write_bytes(noise(3_000_000, 1))
    private.write_bytes(noise(3_000_000, 2))
    small.mkdir()
    for n in range(5):
        (small / str(n)).write_bytes(noise(30_000, 10 + n))
    alice.buckets("create", "race/tiny-hidden", "--private")
    alice.buckets("cp", public, f"{BUCKET}/f")
    alice.buckets("cp", private, "hf://buckets/race/tiny-hidden/f")
    alice.buckets("sync", small, f"{BUCKET}/small")
    alice.buckets("rm", "race/tiny-a1/small/0", "-y")
    bob = client(server, tmp_path, "bob")
    bob.buckets("create", "race/tiny-bob")
    assert sent(server, bob, public, "hf://buckets/race/tiny-bob/f", tmp_path / "h1") == 0
    assert sent(server, bob, private, "hf://buckets/race/tiny-bob/g", tmp_path / "h2") > 3_000_000
    before = server.xorb_bytes()
    bob.home = tmp_path / "h3"
    bob.buckets("sync", small, "hf://buckets/race/tiny-bob/small")
    assert 30_000 <= server.xorb_bytes() - before < 31_000, "only the file that is no longer public"
    for n in range(5):
        assert (
            bob.run("buckets", "cp", f"hf://buckets/race/tiny-bob/small/{n}", "-").stdout
            == (small / str(n)).read_bytes()
        )


def test_an_upload_that_was_cut_short_goes_on_where_it_was(alice: Client, server: Counted, tmp_path: Path) -> None:
    """Two xorbs and no shard: what a client leaves that is killed, and another cache that finds it."""
    up = tmp_path / "up.bin"
    up.write_bytes(noise(SIZE, 5))
    alice.buckets("cp", up, f"{BUCKET}/f")
    (name,) = {path.rpartition("/")[2] for method, path, *_ in server.requests() if "/v1/xorbs/" in path}
    alice.buckets("rm", "race/tiny-a1/f", "-y")
    server.stop()
    _forget_contents(server)
    server.start()
    assert sent(server, alice, up, f"{BUCKET}/f", tmp_path / "h2") == 0
    grants = [row for row in server.requests() if "/v1/xorb-grants/" in row[1] and row[1].endswith(name)]
    assert [row[2] for row in grants] == ["404", "200"]


def _forget_contents(server: Counted) -> None:
    site = open_site(server.settings)
    with site.engine.begin() as connection:
        for statement in ("DELETE FROM contents", "DELETE FROM claims WHERE kind = 'content'"):
            connection.exec_driver_sql(statement)
    site.engine.dispose()
