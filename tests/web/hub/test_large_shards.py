"""A shard that is too much to verify at once is registered in parts: clients send it again by themselves."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.local import effort
from storage.local.effort import PER_FILE, PER_SEARCH, PER_TABLE, PER_TERM
from storage.settings import Settings
from storage.xet.hashes import Digest, to_text
from storage.xet.shards import FileClaim, serialise
from tests.conftest import eventually
from tests.storage.xet.builders import claim, noise, xorb
from tests.web.hub.conftest import Access, Hub, add
from tests.web.hub.test_dedup_client import Counted
from tests.web.hub.test_hf_client import BUCKET, client, running

_ROOT = Path(__file__).resolve().parents[3]
FILES = {f"{at}.bin": noise(1_000_000, seed=at) for at in range(6)}
MINE, THEIRS = "race/tiny-a1", "race/tiny-bob"
PIECES = [noise(200, seed) for seed in range(8)]
ONE_FILE = PER_FILE + PER_TERM
OVERHEAD = 2 * PER_SEARCH + PER_TABLE
MOST = OVERHEAD + 4 * (ONE_FILE + 20)
"""Enough for four files of six, which have about 16 chunks each, in one xorb."""


@pytest.fixture
def mine(hub: Hub) -> Access:
    hub.create("alice", MINE)
    access = hub.access("alice", MINE)
    assert hub.send_xorb(access, PIECES).status_code == 200
    return access


@pytest.mark.parametrize("address", ["/v1/shards", "/v2/shards"])
def test_a_shard_that_is_too_much_at_once_goes_on_where_it_was_left(
    hub: Hub, mine: Access, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """Work for three files of five: they are registered and not verified again, and nothing else is there."""
    files = [claim(xorb(PIECES)[1], at, at + 1) for at in range(5)]
    lines = [add(f"f{at}", to_text(each.digest)) for at, each in enumerate(files)]
    monkeypatch.setattr(effort, "MOST", OVERHEAD + 3 * (ONE_FILE + 1))
    answer = hub.send_shard(mine, serialise(files), address)
    assert (answer.status_code, answer.headers["X-Error-Code"]) == (503, "SHARD_UNFINISHED")
    assert "3 of its files are registered" in answer.json()["error"]
    assert [line["path"] for line in hub.batch("alice", MINE, *lines).json()["failed"]] == ["f3", "f4"]
    assert hub.send_shard(mine, serialise(files), address).status_code == 200
    assert hub.batch("alice", MINE, *lines).json()["success"] is True


def test_a_shard_that_gets_no_further_is_400(hub: Hub, mine: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its sender would go on for ever."""
    small, large = claim(xorb(PIECES)[1], 0, 1), claim(xorb(PIECES)[1])
    monkeypatch.setattr(effort, "MOST", OVERHEAD + ONE_FILE + len(PIECES) - 1)
    assert hub.send_shard(mine, serialise([small, large])).status_code == 503
    assert hub.send_shard(mine, serialise([small, large])).status_code == 400


def test_a_known_file_stands_for_itself_alone(hub: Hub, mine: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its terms aren't looked at again, and it proves nothing of another file; what others may not read isn't known."""
    known = claim(xorb(PIECES)[1], 0, 2)
    assert hub.send_shard(mine, serialise([known])).status_code == 200
    bare, lie = FileClaim(known.digest, (), ()), FileClaim(Digest(noise(32)), known.terms, known.proofs)
    assert hub.send_shard(mine, serialise([bare])).json() == {"result": 0}
    assert hub.send_shard(mine, serialise([bare, lie])).status_code == 400
    hub.create("bob", THEIRS)
    theirs = hub.access("bob", THEIRS)
    assert hub.send_shard(theirs, serialise([bare])).status_code == 400
    hub.batch("alice", MINE, add("f", to_text(known.digest)))
    assert hub.send_shard(theirs, serialise([bare])).json() == {"result": 1}
    assert hub.batch("bob", THEIRS, add("f", to_text(known.digest))).status_code == 200


def test_that_work_ran_out_over_others_files_is_told_to_nobody(
    hub: Hub, mine: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.create("bob", THEIRS)
    theirs, own = hub.access("bob", THEIRS), [noise(100, 77)]
    hub.upload("alice", MINE, "f", PIECES)
    hub.send_xorb(theirs, own)
    files = [claim(xorb(own)[1]), claim(xorb(PIECES)[1], 0, 1)]
    unknown = [files[0], claim(xorb([noise(100, 78)] * 2)[1])]
    monkeypatch.setattr(effort, "MOST", OVERHEAD + 2 * ONE_FILE + 2 * PER_SEARCH)
    here, nowhere = (hub.send_shard(theirs, serialise(some)) for some in (files, unknown))
    assert (here.status_code, here.json()) == (nowhere.status_code, nowhere.json())
    assert here.status_code == 400


class Frugal(Counted):
    """A server that verifies little at once."""

    def start(self) -> None:
        script = Path(__file__).with_name("serve_frugal.py")
        paths = [str(path) for path in (script, self.settings.data, self.settings.challenge)]
        command = [sys.executable, *paths, str(self.port), str(self.log.with_suffix(".requests")), str(MOST)]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(_ROOT)}, stderr=log)
        eventually(self._answers, what="the server's first answer")


@pytest.fixture
def server(settings: Settings, tmp_path: Path) -> Iterator[Frugal]:
    with running(Frugal, settings, tmp_path) as made:
        yield made


def test_a_folder_that_is_too_much_at_once_is_uploaded_all_the_same(server: Frugal, tmp_path: Path) -> None:
    alice = client(server, tmp_path, "alice")
    alice.buckets("create", "race/tiny-a1")
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.mkdir()
    for name, data in FILES.items():
        (sent / name).write_bytes(data)
    alice.buckets("sync", sent, BUCKET)
    shards = [status for _, path, status, _ in server.requests() if path.endswith("/shards")]
    assert shards == ["503", "200"]
    alice.buckets("sync", BUCKET, back)
    assert {path.name: path.read_bytes() for path in back.iterdir() if path.is_file()} == FILES
