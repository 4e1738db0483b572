"""Many processes post at one frozen moment while some are killed: what was acknowledged is there, once, and all agrees.

The small ones run with every test run; the whole, 20 processes of 200 posts with a SIGKILL each second, is `long`.
"""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest
from starlette.testclient import TestClient

from storage.database import reading, writing
from storage.settings import Settings
from storage.site import Site
from tests.conftest import eventually
from tests.people import add_agent, add_person
from web.app import create_app

ROOT = Path(__file__).resolve().parents[2]
AGENT = "blue-heron"
WITHIN_S = 600.0
LIMITS = """
[limits]
raw_posts_per_min = 1000000
raw_posts_per_hour = {per_hour}
"""


@dataclass
class Writer:
    """A process that posts, and the answers it has told of: status, file name, body."""

    process: "subprocess.Popen[str]"
    told: list[tuple[int, str, str]] = field(default_factory=list)

    def listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith("\n"):  # a killed writer's last line may be cut
                status, name, body = line.rstrip("\n").split(" ", 2)
                self.told.append((int(status), name, body))

    @property
    def posted(self) -> dict[str, str]:
        return {name: body for status, name, body in self.told if status == 201}


@pytest.fixture
def per_hour() -> int:
    return 1_000_000


@pytest.fixture
def settings(tmp_path: Path, challenge_file: Path, per_hour: int) -> Settings:
    challenge_file.write_text(challenge_file.read_text() + LIMITS.format(per_hour=per_hour))
    return Settings(data=tmp_path / "data", challenge=challenge_file)


@pytest.fixture
def token(site: Site) -> str:
    with writing(site.engine) as session:
        token = add_person(site, session, "ada")
        add_agent(site, session, AGENT, token)
    return token


@contextmanager
def writers(site: Site, token: str, *, processes: int, posts: int) -> Iterator[list[Writer]]:
    """Start writers; at the end of the block wait for those that are left."""
    paths = [str(site.settings.data), str(site.settings.challenge)]
    command = [sys.executable, "-m", "tests.long.write_posts", *paths, token, AGENT]
    started = [
        Writer(
            subprocess.Popen([*command, f"w{number}", str(posts)], cwd=ROOT, stdout=subprocess.PIPE, text=True),
        )
        for number in range(processes)
    ]
    listeners = [Thread(target=writer.listen) for writer in started]
    for listener in listeners:
        listener.start()
    try:
        yield started
        for writer in started:
            writer.process.wait(WITHIN_S)
    finally:
        for writer, listener in zip(started, listeners, strict=True):
            writer.process.kill()
            listener.join()
            writer.process.wait()
            assert writer.process.stdout is not None
            writer.process.stdout.close()


def check(site: Site, token: str, found: list[Writer]) -> int:
    """Find everything acknowledged by API, listing and file; find all else sound; return how many posts there are."""
    posted = [item for writer in found for item in writer.posted.items()]
    assert len({name for name, _ in posted}) == len(posted)
    assert len({name.partition("_")[0] for name, _ in posted}) == len(posted)
    with TestClient(create_app(site), headers={"Authorization": f"Bearer {token}"}) as client:
        listed = client.get("/v1/messages", params={"limit": "0"}).json()["items"]
        assert len(set(listed)) == len(listed)
        assert {name for name, _ in posted} <= set(listed)
        for name, body in posted:
            assert client.get(f"/v1/messages/{name}").json()["body"] == body
    with reading(site.engine) as session:
        buckets = site.buckets(session)
        for name, body in posted:
            assert buckets.read(site.central, f"message_board/{name}").decode().endswith(body)
    with sqlite3.connect(site.settings.data / "paddock.db") as rows:
        assert rows.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows.close()
    paths = ["--data", str(site.settings.data), "--challenge", str(site.settings.challenge)]
    command = [sys.executable, "-m", "web", "reindex", "--check", *paths]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return len(listed)


def test_four_writers_of_whom_one_is_killed_lose_and_repeat_nothing(site: Site, token: str) -> None:
    with writers(site, token, processes=4, posts=25) as started:
        eventually(lambda: len(started[0].told) >= 5, within_s=WITHIN_S, what="the fifth post")
        started[0].process.kill()
    assert [len(writer.posted) for writer in started[1:]] == [25, 25, 25]
    assert len(started[0].posted) < 25
    there = check(site, token, started)
    told = sum(len(writer.posted) for writer in started)
    assert told <= there <= told + 1  # committed, and killed before it could say so


@pytest.mark.parametrize("per_hour", [30])
def test_of_all_processes_together_as_many_succeed_as_the_hour_allows(site: Site, token: str, per_hour: int) -> None:
    with writers(site, token, processes=4, posts=25) as started:
        pass
    answers = [status for writer in started for status, _, _ in writer.told]
    assert sorted(answers) == [201] * per_hour + [429] * (100 - per_hour)
    with writers(site, token, processes=1, posts=1) as again:
        pass
    assert [status for status, _, _ in again[0].told] == [429], "the limit holds in a process started later"


@pytest.mark.long
def test_twenty_writers_one_of_whom_is_killed_each_second_lose_and_repeat_nothing(site: Site, token: str) -> None:
    seed = random.SystemRandom().randrange(2**32)
    chance, killed = random.Random(seed), 0
    with writers(site, token, processes=20, posts=200) as started:
        eventually(lambda: all(writer.told for writer in started), within_s=WITHIN_S, what="a post of each writer")
        while len(alive := [writer for writer in started if writer.process.poll() is None]) > 5:
            chance.choice(alive).process.kill()
            killed += 1
            Event().wait(1.0)
    there = check(site, token, started)
    told = sum(len(writer.posted) for writer in started)
    assert told <= there <= told + killed
    assert killed
    print(
        f"seed {seed}: 20 writers of 200 posts at one frozen moment, {killed} killed, one each second: {told} posts "
        f"acknowledged, {there} there; all readable by API, listing and file, names and stamps distinct, "
        "integrity_check ok, reindex --check clean"
    )
