"""Kill the server with SIGKILL at random points of posts and uploads: what it acknowledged is there, and all agrees.

Each round prints what it did; `make test-long` keeps that in docs/long-tests/.
"""

import hashlib
import random
import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from tests.conftest import eventually
from tests.e2e.race import Agent, Race, lay_out

pytestmark = pytest.mark.long

ROUNDS = 8
POSTERS = 20
UPLOADERS = 3
LATEST_KILL_S = 2.5
NO_LIMITS = """
[limits]
promotions_per_min = 1000000
raw_posts_per_min = 1000000
raw_posts_per_hour = 1000000
registrations_per_min = 1000000
"""


@dataclass
class Acknowledged:
    """What the server said it has: bodies by file name, digests by path in the bucket."""

    posts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def race(tmp_path: Path):
    race = lay_out(tmp_path / "race")
    file = race.folder / "challenge.toml"
    file.write_text(file.read_text() + NO_LIMITS)
    race.start(worker=False)
    yield race
    race.stop(signal.SIGKILL)


def test_nothing_acknowledged_is_lost_when_the_server_is_killed_again_and_again(race: Race) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}: {ROUNDS} rounds of {POSTERS} posters and {UPLOADERS} uploaders")
    chance = random.Random(seed)
    agent = race.agent("ada", "blue-heron")
    agent.join()
    known = Acknowledged()
    for number in range(1, ROUNDS + 1):
        after_s = chance.uniform(0.05, LATEST_KILL_S)
        posts, files = len(known.posts), len(known.files)
        _work_through_a_kill(race, agent, known, number, after_s)
        _check(race, agent, known)
        print(
            f"round {number:2}: killed after {after_s:4.2f} s, {len(known.posts) - posts:4} posts and "
            f"{len(known.files) - files} uploads acknowledged; {len(known.posts)} posts and {len(known.files)} files "
            "in all are there, names distinct, integrity_check ok, reindex --check clean"
        )
    assert known.posts
    assert known.files


def test_twenty_processes_worth_of_posts_at_once_get_names_of_their_own(race: Race) -> None:
    agent = race.agent("ada", "blue-heron")
    agent.join()
    with ThreadPoolExecutor(POSTERS) as pool:
        answers = list(pool.map(lambda n: _post(agent, f"at once {n}"), range(POSTERS * 10)))
    names = [answer.json()["filename"] for answer in answers]
    assert len({name.partition("_")[0] for name in names}) == len(names)
    for name, n in zip(names, range(POSTERS * 10), strict=True):
        assert agent.call("GET", f"/v1/messages/{name}").json()["body"] == f"at once {n}"
    print(f"{len(names)} posts of {POSTERS} clients at once: {len(names)} distinct stamps, all readable")


def _work_through_a_kill(race: Race, agent: Agent, known: Acknowledged, number: int, after_s: float) -> None:
    over = Event()
    posters = [_poster(agent, known, f"{number}-{n}") for n in range(POSTERS)]
    uploaders = [_uploader(race, agent, known, f"{number}-{n}") for n in range(UPLOADERS)]
    threads = [Thread(target=_repeat, args=(step, over)) for step in (*posters, *uploaders)]
    for thread in threads:
        thread.start()
    over.wait(after_s)
    race.stop(signal.SIGKILL)
    over.set()
    race.start(worker=False)  # an upload under way tries again and may still succeed
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


def _repeat(step: Callable[[int], None], over: Event) -> None:
    count = 0
    while not over.is_set():
        step(count)
        count += 1


def _post(agent: Agent, body: str) -> httpx.Response:
    answer = agent.call("POST", "/v1/messages", {"agent_id": agent.agent_id, "body": body})
    assert answer.status_code == 201, answer.text
    return answer


def _poster(agent: Agent, known: Acknowledged, name: str) -> Callable[[int], None]:
    def step(count: int) -> None:
        body = f"post {name}-{count}"
        with suppress(httpx.TransportError):  # killed before it answered: nothing was acknowledged
            known.posts[_post(agent, body).json()["filename"]] = body

    return step


def _uploader(race: Race, agent: Agent, known: Acknowledged, name: str) -> Callable[[int], None]:
    folder = race.folder / f"up-{name}"
    folder.mkdir()

    def step(count: int) -> None:
        data = random.Random(f"{name}-{count}").randbytes(300_000)
        (folder / "file").write_bytes(data)
        path = f"files/{name}-{count}"
        if (
            agent.hf("buckets", "cp", folder / "file", f"hf://buckets/{agent.bucket}/{path}", check=False).returncode
            == 0
        ):
            known.files[path] = hashlib.sha256(data).hexdigest()

    return step


def _check(race: Race, agent: Agent, known: Acknowledged) -> None:
    listed = {record["filename"]: record for record in agent.call("GET", "/api/messages").json()["items"]}
    for name, body in known.posts.items():
        assert listed[name]["content"].endswith(body), name
    assert len({name.partition("_")[0] for name in listed}) == len(listed)
    for path, digest in known.files.items():
        held = agent.call("GET", f"/buckets/{agent.bucket}/resolve/{path}")
        assert hashlib.sha256(held.content).hexdigest() == digest, path
    with sqlite3.connect(race.data / "paddock.db") as rows:
        assert rows.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    rows.close()
    checked = race.paddock("reindex", "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    eventually(lambda: _post(agent, "alive").status_code == 201, within_s=10, what="a post after the restart")
