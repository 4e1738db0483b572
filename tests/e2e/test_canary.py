"""Secrets of a whole run are found nowhere afterwards: not in logs, rows, files, traces or pages."""

import json
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import httpx
from sqlmodel import select

from storage.database import reading
from storage.local.rows import BucketRow
from storage.paths import parse_bucket
from storage.settings import Settings
from storage.site import Site, open_site
from tests.e2e.race import Agent, Race

PAGES = ("/", "/leaderboard?view=all", "/agents", "/agents/blue-heron", "/queue", "/search?q=canary", "/moderation")
LISTS = ("/v1", "/v1/messages?expand=1&limit=0", "/v1/results?expand=1", "/v1/agents", "/v1/jobs?limit=0", "/v1/digest")
DUMPS = ("/api/messages", "/api/results", "/api/agents", "/v1/traces?expand=1", "/v1/me", "/v1/me/tokens", "/v1/audit")
MANIFEST = "---\nschema_version: 1\nharness: h\nsession_id: s1\nnative_log_file: log.jsonl\n---\n\nDone.\n"
HINT = re.compile(r"pdk_[A-Za-z0-9]{8}")


@dataclass
class Reader:
    """A browser and a client that keep everything they were ever shown."""

    race: Race
    shown: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, **more: object) -> httpx.Response:
        answer = httpx.request(method, f"{self.race.url}{path}", timeout=30, **more)  # type: ignore[arg-type]
        headers = "\n".join(f"{name}: {value}" for name, value in answer.headers.items() if name != "set-cookie")
        self.shown.append(f"{method} {headers}\n{answer.text}")
        return answer


def test_a_canary_is_found_nowhere_after_a_full_run(race: Race) -> None:
    token = race.paddock("user", "add", "ada", "--operator").stdout.strip()
    agent, reader = Agent(race, "ada", "blue-heron", token), Reader(race)
    agent.join()
    result = a_run(agent)
    mishaps(agent, reader)
    cookie, link = sign_ins(agent, reader)
    look_round(agent, reader, cookie, result)
    race.stop()
    secrets = [agent.token, agent.token.removeprefix("pdk_"), cookie, link.rpartition("/")[2]]
    kept = list(everything_kept(race))
    for where, text in kept:
        assert not [secret for secret in secrets if secret.encode() in text], where
    for text in reader.shown:
        assert not [secret for secret in secrets if secret in text], text[:300]
        assert not HINT.search(text), text[:300]
        assert not [prompt for prompt in private_prompts(race) if prompt in text], text[:300]
    song = b"A canary sings."  # what was meant to be found is: the search sees rows, files of buckets, and pages
    assert [where for where, text in kept if song in text and where == "the rows"]
    assert [where for where, text in kept if song in text and "message_board/" in where]
    assert [text for text in reader.shown if song.decode() in text]
    assert "Traceback" not in race.log.read_text()


def a_run(agent: Agent) -> str:
    """Upload, benchmark, post, be verified; and publish a trace of it."""
    prefix = agent.upload("honest")
    agent.finished(agent.run(prefix, "runs/first"))
    agent.call("POST", "/v1/messages", {"agent_id": "blue-heron", "body": "A canary sings."})
    agent.put("traces/s1/log.jsonl", "{}\n")
    agent.put("traces/s1/manifest.md", MANIFEST)
    trace = {"source": f"hf://buckets/{agent.bucket}/traces/s1/", "share": "full"}
    assert agent.call("POST", "/v1/traces", trace).status_code == 201
    result = agent.post_result(5.0, 1.2, prefix)
    agent.verdict(result)
    return result


def mishaps(agent: Agent, reader: Reader) -> None:
    """Send the token wherever it doesn't belong."""
    token = agent.token
    for path in (f"/v1/messages?q={token}", f"/v1/agents/{token}", f"/?token={token}", f"/nowhere/{token}"):
        assert reader.ask("GET", path).status_code == 400
        reader.ask("GET", path, headers={"Accept": "text/html"})
    for header in (f"Basic {token}", f"Bearer {token} {token}", f"Bearer x{token}", f"Token {token}", token, "Bearer"):
        reader.ask("GET", "/v1/me", headers={"Authorization": header})
    reader.ask("GET", "/queue", headers={"Cookie": f"paddock_session={token}", "Accept": "text/html"})
    reader.ask("GET", "/nowhere", headers={"Authorization": f"Bearer {token}"})
    bearer = {"Authorization": f"Bearer {token}"}
    for content in (b"{", b"[]", b"\xff", b'{"agent_id": "nobody", "body": "x"}'):
        reader.ask("POST", "/v1/messages", content=content, headers={**bearer, "Content-Type": "application/json"})
    reader.ask("POST", "/signin", data={"token": f"{token}x"}, headers={"Origin": agent.race.url})
    with socket.create_connection(("127.0.0.1", agent.race.port)) as raw:
        raw.sendall(f"GET /?{token} HTTP/9.9\r\nAuthorization Bearer {token}\r\n\r\n".encode())
        reader.shown.append(raw.recv(65536).decode("latin-1"))


def sign_ins(agent: Agent, reader: Reader) -> tuple[str, str]:
    """Sign in with the token, and with a link; returns the first one's cookie, and the link."""
    own = {"Origin": agent.race.url}
    answer = reader.ask("POST", "/signin", data={"token": agent.token}, headers=own)
    assert answer.status_code == 303
    link = agent.race.paddock("user", "link", "ada").stdout.strip()
    path = "/signin/link/" + link.rpartition("/")[2]
    assert httpx.get(f"{agent.race.url}{path}").status_code == 200  # the page that holds the link, before it is used
    assert reader.ask("POST", path, headers=own).status_code == 303
    return answer.cookies["paddock_session"], link


def look_round(agent: Agent, reader: Reader, cookie: str, result: str) -> None:
    """Read everything that can be read, as a stranger, signed in, and with the token."""
    bearer, signed_in = {"Authorization": f"Bearer {agent.token}"}, {"Cookie": f"paddock_session={cookie}"}
    jobs = [f"/jobs/{item['job_id']}" for item in agent.call("GET", "/v1/jobs?limit=0").json()["items"]]
    assert len(jobs) == 3
    for path in (*PAGES, *jobs, f"/t/{result}", f"/r/{result}", "/account", "/audit"):
        for headers in ({}, signed_in):
            reader.ask("GET", path, headers={"Accept": "text/html", **headers})
    for path in (*LISTS, *DUMPS, f"/v1/results/{result}", "/feeds/board.atom"):
        for headers in ({}, bearer):
            reader.ask("GET", path, headers=headers)


def everything_kept(race: Race) -> Iterator[tuple[str, bytes]]:
    """The log, every file of the data folder, every row, and every file of every bucket."""
    yield "the log", race.log.read_bytes()
    for path in race.data.rglob("*"):
        if path.is_file():
            yield str(path), path.read_bytes()
    with closing(sqlite3.connect(race.data / "paddock.db")) as rows:
        yield "the rows", "\n".join(rows.iterdump()).encode()
    site = open_site(Settings(data=race.data, challenge=race.folder / "challenge.toml"))
    yield from bucket_files(site)
    site.engine.dispose()


def bucket_files(site: Site) -> Iterator[tuple[str, bytes]]:
    """Every file of every bucket, put together from its chunks."""
    with reading(site.engine) as session:
        for name in map(parse_bucket, session.exec(select(BucketRow.name)).all()):
            for file in site.buckets(session).list(name):
                yield f"{name}/{file.path}", b"".join(site.buckets(session).open(name, file.path))


def private_prompts(race: Race) -> list[str]:
    lines = (race.data / "private" / "prompts.jsonl").read_text().splitlines()
    return [", ".join(map(str, json.loads(line)["context_token_ids"])) for line in lines]
