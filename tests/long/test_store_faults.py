"""Break the store's server, disk, clients, clocks and tokens while real clients upload: nothing acknowledged is lost.

After each fault every acknowledged file reads back identical, every listed file is whole, and fsck finds nothing.
Each test prints what it saw; docs/long-tests/ keeps that.
"""

import contextlib
import hashlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Semaphore

import httpx
import pytest

from storage.settings import Settings
from storage.site import open_site
from tests.conftest import eventually
from tests.e2e.race import Agent, Race, lay_out
from tests.web.hub.test_dedup_client import Counted
from tests.web.hub.test_hf_client import client

pytestmark = pytest.mark.long

UPLOADS = 50
KILLS = 20
CUT_OFF = re.compile("error sending request|Connection (refused|reset)|disconnected")
"""What a client says whose server is gone; not what it says of a refusal."""
UPLOADERS = 3
PATIENCE_S = 600  # the client tries again for up to six minutes, and a little more
SIZES = (20_000, 3_000_000, 12_000_000)
GIGABYTE = 1_000_000_000


@dataclass
class Known:
    """Digests of contents: what was acknowledged by path, and everything that was ever sent to a path."""

    acknowledged: dict[str, str] = field(default_factory=dict)
    sent: dict[str, set[str]] = field(default_factory=dict)


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    made = lay_out(tmp_path / "race")
    made.start(worker=False)
    yield made
    made.stop(signal.SIGKILL)


@pytest.fixture
def agent(race: Race) -> Agent:
    made = race.agent("ada", "blue-heron")
    made.hf("buckets", "create", made.bucket)
    return made


def noise_file(path: Path, size: int, seed: object) -> str:
    """Write a file of random bytes; return its SHA-256."""
    source, digest = random.Random(str(seed)), hashlib.sha256()
    with path.open("wb") as file:
        for start in range(0, size, 1 << 24):
            piece = source.randbytes(min(1 << 24, size - start))
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def start_hf(agent: Agent, home: str, *arguments: object) -> "subprocess.Popen[bytes]":
    """Start the client with a cache of its own."""
    env = {**os.environ, "HF_ENDPOINT": agent.race.url, "HF_TOKEN": agent.token, "NO_COLOR": "1"}
    env |= {"HF_HOME": str(agent.race.folder / home), "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    command = [str(Path(sys.executable).parent / "hf"), *map(str, arguments)]
    with (agent.race.folder / f"said-{home}").open("wb") as said:
        return subprocess.Popen(command, env=env, stdout=said, stderr=subprocess.STDOUT)


def said(agent: Agent, home: str) -> str:
    """Return the last line that the latest client with that cache wrote: why it failed, if it did."""
    lines = (agent.race.folder / f"said-{home}").read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def send(agent: Agent, known: Known, home: str, path: str, *, size: int, seed: object) -> bool:
    """Upload fresh bytes to a path; tell whether that was acknowledged."""
    file = agent.race.folder / f"up-{home}"
    digest = noise_file(file, size, seed)
    known.sent.setdefault(path, set()).add(digest)
    done = start_hf(agent, home, "buckets", "cp", file, f"hf://buckets/{agent.bucket}/{path}").wait(PATIENCE_S) == 0
    if done:
        known.acknowledged[path] = digest
    return done


def check(agent: Agent, known: Known) -> str:
    """See that all is well; say what was looked at."""
    answer = agent.call("GET", f"/api/buckets/{agent.bucket}/tree?recursive=true&limit=1000")
    listed = [entry["path"] for entry in answer.json()]
    for path in listed:
        held = agent.call("GET", f"/buckets/{agent.bucket}/resolve/{path}")
        digest = hashlib.sha256(held.content).hexdigest()
        assert held.status_code == 200, path
        assert digest in known.sent[path], f"{path} is none of what was sent"
        assert path not in known.acknowledged or digest == known.acknowledged[path], path
    assert set(known.acknowledged) <= set(listed)
    return f"{len(known.acknowledged)} acknowledged and {len(listed)} listed files identical, {fsck(agent.race)}"


def fsck(race: Race) -> str:
    done = race.paddock("fsck")
    assert done.returncode == 0, done.stdout + done.stderr
    return f"fsck: {done.stdout.strip()}"


def test_the_server_is_killed_at_random_points_of_fifty_uploads(race: Race, agent: Agent) -> None:
    """Each kill comes at any moment of the upload that follows the first one, or the first two, to end after the last.

    So the loop gets on at any speed of the machine. A client sends a request again for half a minute, but asks for
    its first token only once: an upload that meets a kill there fails and says so. It may fail for nothing else.
    """
    seed = random.SystemRandom().randrange(2**32)
    known, over, ended = Known(), Event(), Semaphore(0)
    began = time.monotonic()
    assert send(agent, known, "h", "undisturbed", size=3_000_000, seed=seed)
    pace_s = time.monotonic() - began

    def killer() -> int:
        chance, kills = random.Random(seed), 0
        while True:
            for _ in range(chance.choice((1, 2))):
                ended.acquire()
            if over.wait(chance.uniform(0, pace_s)):
                return kills
            race.stop(signal.SIGKILL)
            race.start(worker=False)
            kills += 1

    def uploader(number: int) -> list[str]:
        failures = []
        for n in range(number, UPLOADS, UPLOADERS):
            size = random.Random(f"{seed} {n}").choice(SIZES)
            eventually(lambda: answers(race), within_s=120, what="the server after a kill")
            if not send(agent, known, f"h{number}", f"f{n}", size=size, seed=(seed, n)):
                failures.append(said(agent, f"h{number}"))
            ended.release()
        return failures

    with ThreadPoolExecutor(UPLOADERS + 1) as pool:
        killing = pool.submit(killer)
        try:
            failures = [reason for reasons in pool.map(uploader, range(UPLOADERS)) for reason in reasons]
        finally:
            over.set()
            ended.release(2)
        kills = killing.result()
    print(f"seed {seed}: an upload takes {pace_s:.1f} s; server killed {kills} times, ", end="")
    print(f"{UPLOADS - len(failures)} of {UPLOADS} uploads acknowledged; {check(agent, known)}")
    for reason, times in Counter(failures).items():
        print(f"    {times} failed: {reason}")
    assert kills >= KILLS
    assert len(failures) < UPLOADS / 2
    assert all(CUT_OFF.search(reason) for reason in failures)


def answers(race: Race) -> bool:
    """Tell whether somebody answers at the server's port."""
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"{race.url}/v1/healthz").status_code == 200
    return False


def test_clients_are_killed_and_their_next_run_finishes(race: Race, agent: Agent) -> None:
    chance, known = random.Random(), Known()
    cut_short = 0
    for number in range(6):
        path = f"f{number}"
        file = race.folder / path
        digest = noise_file(file, 90_000_000, number)
        known.sent[path] = {digest}
        first = start_hf(agent, "h", "buckets", "cp", file, f"hf://buckets/{agent.bucket}/{path}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            first.wait(chance.uniform(0.5, 2.5))
        first.kill()
        cut_short += first.wait() != 0
        check(agent, known)
        agent.hf("buckets", "cp", file, f"hf://buckets/{agent.bucket}/{path}")
        known.acknowledged[path] = digest
    assert cut_short
    leftovers = list((race.data / "store" / "incoming").iterdir())
    assert not leftovers
    print(f"{cut_short} of 6 clients killed under way, nothing half-visible, no leftovers; {check(agent, known)}")


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Callable[[str], None]]:
    """Mount a small disk in memory; the value makes it larger. Skips where mounting isn't allowed."""
    folder.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"NOT RUN: this machine does not let us mount a small disk: {made.stderr.strip()}")

    def grow(to: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={to}", folder], check=True)

    try:
        yield grow
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_refuses_uploads_and_loses_none(tmp_path: Path) -> None:
    known = Known()
    with small_disk(tmp_path / "race" / "data", "64m") as grow:
        race = lay_out(tmp_path / "race")
        race.start(worker=False)
        try:
            agent = race.agent("ada", "blue-heron")
            agent.hf("buckets", "create", agent.bucket)
            done = [send(agent, known, "h", f"f{n}", size=9_000_000, seed=n) for n in range(8)]
            assert done[0]
            assert not done[-1]
            assert "507 Insufficient Storage" in said(agent, "h")
            full = check_reading(agent, known)
            assert race.is_up()
            grow("300m")
            again = [send(agent, known, "h", f"f{n}", size=9_000_000, seed=n) for n in range(8)]
            assert all(again)
            print(
                f"disk full: {done.count(False)} of 8 uploads refused, {full} still read; with room all 8 went in; ",
                end="",
            )
            print(check(agent, known))
        finally:
            race.stop(signal.SIGKILL)


def check_reading(agent: Agent, known: Known) -> int:
    """Read everything acknowledged from a store whose disk is full; count it."""
    for path, digest in known.acknowledged.items():
        held = agent.call("GET", f"/buckets/{agent.bucket}/resolve/{path}")
        assert hashlib.sha256(held.content).hexdigest() == digest
    return len(known.acknowledged)


def test_a_token_that_runs_out_is_renewed_under_way(
    tmp_path: Path, challenge_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client renews what has 30 s or less to live. The server stands still until the first token is that old."""
    monkeypatch.setenv("PADDOCK_STORE_TOKEN_LIFE", "33")
    settings = Settings(data=tmp_path / "data", challenge=challenge_file)
    server = Counted(settings, _free_port(), tmp_path / "server.log")
    open_site(settings).engine.dispose()
    try:
        server.start()
        alice = client(server, tmp_path, "alice")
        alice.buckets("create", "race/tiny-a1")
        digest = noise_file(tmp_path / "up", 260_000_000, "token")
        with ThreadPoolExecutor(1) as pool:
            upload = pool.submit(alice.buckets, "cp", tmp_path / "up", "hf://buckets/race/tiny-a1/f")
            eventually(lambda: _count(server, "/v1/xorbs/"), within_s=60, what="the first xorb")
            assert server.process
            server.process.send_signal(signal.SIGSTOP)
            Event().wait(6)
            server.process.send_signal(signal.SIGCONT)
            upload.result(120)
        tokens = _count(server, "/xet-write-token")
        assert tokens >= 2
        held = alice.run("buckets", "cp", "hf://buckets/race/tiny-a1/f", "-").stdout
        assert hashlib.sha256(held).hexdigest() == digest
        print(f"a 260 MB upload got {tokens} access tokens of 33 s each and reads back identical")
    finally:
        server.stop(signal.SIGKILL)


def _count(server: Counted, part: str) -> int:
    return sum(part in row[1] for row in server.requests())


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_clocks_that_are_wrong_hide_no_update(race: Race, agent: Agent) -> None:
    """A's files are dated 2001 and 2040; whatever A sends next reaches B, though sizes never change."""
    years = {"old": 978_307_200, "new": 2_208_988_800}
    here, there = race.folder / "here", race.folder / "there"
    here.mkdir()
    for name, at in years.items():
        (here / name).write_bytes(b"first")
        os.utime(here / name, (at, at))
    prefix = f"hf://buckets/{agent.bucket}/p"
    agent.hf("buckets", "sync", here, prefix)
    agent.hf("buckets", "sync", prefix, there)
    assert {path.name: path.read_bytes() for path in there.iterdir()} == dict.fromkeys(years, b"first")
    Event().wait(1.5)  # the client tells times apart from a second on
    for name in years:
        (here / name).write_bytes(b"later")
        os.utime(here / name, (years["old"], years["old"]))
        agent.hf("buckets", "cp", here / name, f"{prefix}/{name}")
    agent.hf("buckets", "sync", prefix, there)
    assert {path.name: path.read_bytes() for path in there.iterdir()} == dict.fromkeys(years, b"later")
    print(f"files dated 2001 and 2040: both updates arrived; {fsck(race)}")


def test_two_writers_of_one_path_leave_one_of_their_files(race: Race, agent: Agent) -> None:
    known = Known()
    for number in range(8):
        path = f"f{number}"
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(send, agent, known, f"h{n}", path, size=2_000_000, seed=(number, n)) for n in (1, 2)]
        assert all(upload.result() for upload in both)
        del known.acknowledged[path]  # which of the two came last is theirs to say
    print(f"8 paths written by two clients at once: each holds one whole file; {check(agent, known)}")


def test_a_client_with_a_cache_sends_again_what_a_new_generation_lacks(race: Race, agent: Agent) -> None:
    known = Known()
    assert send(agent, known, "h", "first", size=20_000_000, seed=1)
    assert race.paddock("generation", "--new").returncode == 0
    assert send(agent, known, "h", "second", size=20_000_000, seed=1)
    xorbs = [path for path in (race.data / "store" / "xorbs").rglob("*") if path.stat().st_size > 1_000_000]
    for xorb in xorbs:
        raw = bytearray(xorb.read_bytes())
        raw[len(raw) // 2] ^= 1
        xorb.write_bytes(raw)
    repaired = race.paddock("fsck", "--repair")
    assert repaired.returncode == 1, repaired.stdout + repaired.stderr
    assert agent.call("GET", f"/buckets/{agent.bucket}/resolve/first").status_code == 410
    assert send(agent, known, "h", "first", size=20_000_000, seed=1)
    print(f"new generation while serving, then {len(xorbs)} xorbs damaged and set aside: ", end="")
    print(f"the same client sent them again; {check(agent, known)}")


def test_a_gigabyte_costs_the_server_little_memory(race: Race, agent: Agent) -> None:
    up, down = race.folder / "up", race.folder / "down"
    digest = noise_file(up, GIGABYTE, "memory")
    agent.put("warm", "up")
    idle_mb = _peak_mb(race, reset=True)
    agent.hf("buckets", "cp", up, f"hf://buckets/{agent.bucket}/big")
    sent_mb = _peak_mb(race)
    agent.hf("buckets", "cp", f"hf://buckets/{agent.bucket}/big", down)
    peak_mb = _peak_mb(race)
    with down.open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == digest
    print(f"1 GB up and down: server at {idle_mb} MB idle, peak {sent_mb} MB after the upload, {peak_mb} MB in all")
    assert peak_mb - idle_mb < 200


def _peak_mb(race: Race, *, reset: bool = False) -> int:
    """Read the largest resident size of the server so far, in MB; with `reset`, let it begin anew from here."""
    assert race.process
    folder = Path("/proc") / str(race.process.pid)
    if reset:
        (folder / "clear_refs").write_text("5")
    line = next(line for line in (folder / "status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) // 1000
