"""Server-sent events, over real connections to real processes that share one data folder."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlmodel import Session, select

from board import events
from board.rows import EventRow
from storage.database import writing
from storage.site import Site
from tests import people
from tests.conftest import HeldClock
from web import live

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Event:
    id: str
    kind: str
    data: dict[str, object]


@contextmanager
def served(site: Site) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "tests.web.api.serve_api", str(site.settings.data), str(site.settings.challenge)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}", process
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(10)
        process.stdout.close()


@contextmanager
def following(url: str, last: str | None = None) -> Iterator[Iterator[Event]]:
    """Follow the events; yields them from the first one on, once the server has begun to answer."""
    headers = {"Last-Event-ID": last} if last else {}
    with httpx.stream("GET", f"{url}/v1/events", headers=headers, timeout=30) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield frames(answer.iter_lines())


def frames(lines: Iterator[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        else:
            if "data" in fields or "id" in fields:
                yield Event(fields.get("id", ""), fields.get("event", ""), json.loads(fields.get("data", "{}")))
            fields = {}


def say(url: str, token: str, body: str) -> str:
    asked = {"agent_id": "ant", "body": body}
    answer = httpx.post(f"{url}/v1/messages", json=asked, headers={"Authorization": f"Bearer {token}"}, timeout=30)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["filename"])


@pytest.fixture
def token(site: Site) -> str:
    with writing(site.engine) as session:
        token = people.add_person(site, session, "ann")
        people.add_agent(site, session, "ant", token)
    return token


def test_events_cross_processes_and_a_reconnect_loses_nothing(site: Site, token: str) -> None:
    with served(site) as (one, first), served(site) as (other, _):
        with following(one) as seen:
            assert next(seen).id == "0"
            names = [say(other, token, "A secret word."), say(one, token, "Another.")]
            got = [next(seen), next(seen)]
        assert [event.data["filename"] for event in got] == names
        assert [event.kind for event in got] == ["message", "message"]
        assert "secret" not in json.dumps([event.data for event in got])
        missed = [say(url, token, f"Number {number}.") for number, url in enumerate([one, other, one])]
        with following(other, got[-1].id) as seen:
            assert [next(seen).data["filename"] for _ in missed] == missed
        with following(one) as seen:
            next(seen)
            first.send_signal(signal.SIGTERM)
            with suppress(httpx.RemoteProtocolError):
                assert list(seen) == []
        assert first.wait(4) in (0, -signal.SIGTERM)  # a stream that is left to itself holds it for 5 s


def test_a_gap_resets_and_too_many_streams_are_refused(site: Site, clock: HeldClock, token: str) -> None:
    with writing(site.engine) as session:
        for number in range(4):
            events.record(session, events.Kind.JOB, {"n": number}, now=site.clock())
        clock.forward(days=8)
        events.record(session, events.Kind.JOB, {"n": 4}, now=site.clock())
        events.trim(session, site.clock())
    with served(site) as (url, _):
        for stale in ("2", "99", "x", "-1", "9" * 90):
            with following(url, stale) as seen:
                reset = next(seen)
                assert (reset.kind, reset.id) == ("reset", "5"), stale
        with following(url, "4") as seen:
            assert next(seen).data == {"n": 4}
        assert httpx.head(f"{url}/v1/events", timeout=5).status_code == 200
        with httpx.Client(base_url=url, timeout=30) as client:
            opened = [client.send(client.build_request("GET", "/v1/events"), stream=True) for _ in range(20)]
            refused = client.get("/v1/events")
            assert [answer.status_code for answer in opened] == [200] * 20
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
            for answer in opened:
                answer.close()
            with following(url) as seen:
                assert next(seen).id == "5"


def test_old_events_are_dropped_and_ids_never_come_again(session: Session, site: Site, clock: HeldClock) -> None:
    for number in range(3):
        events.record(session, events.Kind.JOB, {"n": number}, now=clock())
    clock.now += timedelta(days=8)
    events.trim(session, clock())
    assert [row.id for row in session.exec(select(EventRow))] == [3]
    assert events.is_gap(session, 1)
    assert not events.is_gap(session, 2)
    events.record(session, events.Kind.JOB, {}, now=clock())
    assert events.newest_id(session) == 4


def test_looking_is_never_busier_than_once_a_second() -> None:
    assert live.LOOK_EVERY_S >= 1.0


def test_taskforces_their_files_and_traces_are_told_of_as_notes_are_and_quote_nobody(api) -> None:
    ann = api.person("ann")
    api.agent("ant", ann)
    file = api.upload("ant", "f.txt", "a secret word")
    manifest = "---\nschema_version: 1\nharness: h\nsession_id: s1\n---\na secret word"
    trace = api.upload("ant", "traces/s1/manifest.md", manifest).rpartition("/")[0]
    raw = {"agent_id": "ant", "body": "a secret word"}
    for path, sent in (
        ("/v1/taskforces", {"name": "speed", **raw}),
        ("/v1/taskforces", {"name": "speed", **raw}),
        ("/v1/taskforces/speed/files", raw),
        ("/v1/taskforces/speed/files", {"source": file, "dest_path": "f_ant.txt"}),
        ("/v1/traces", {"source": f"{trace}/"}),
    ):
        assert api.client.post(path, json=sent, headers=ann).status_code in (200, 201), path
    with writing(api.site.engine) as session:
        rows = events.after(session, 0, limit=9)
        assert [row.kind for row in rows] == ["taskforce", "taskforce", "note", "file", "trace"]
        assert [row.data.get("created") for row in rows[:2]] == [True, False]
        assert (rows[3].data["path"], rows[3].data["folder"]) == ("f_ant.txt", "taskforces/speed")
        assert (rows[4].data["agent"], rows[4].data["session_id"], rows[4].data["share"]) == ("ant", "s1", "stats")
        assert "secret" not in json.dumps([row.data for row in rows])
