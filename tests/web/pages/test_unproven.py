"""In a race that takes posts without a token, what nobody proved says so wherever it is shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from storage.database import writing
from storage.settings import Settings
from storage.site import Site
from tests.conftest import CHALLENGE
from tests.people import add_agent, add_files, add_person
from web.app import create_app

RESULT = "---\ntps: 10.5\nppl: 2.1\nmethod: {0}\nstatus: agent-run\ndescription: A start.\n---\n\nFast {0}.\n"


@pytest.fixture
def challenge_file(tmp_path: Path) -> Path:
    path = tmp_path / "challenge.toml"
    path.write_text(f"tokenless = true\n{CHALLENGE}")
    return path


@pytest.fixture
def client(site: Site, settings: Settings) -> Iterator[TestClient]:
    """A board with a message and a result by a bearer, and one of each by nobody in particular."""
    assert site.challenge.tokenless
    with writing(site.engine) as session:
        token = add_person(site, session, "ada")
        for agent in ("blue-heron", "red-fox"):
            add_agent(site, session, agent, token)
            add_files(site, session, agent, {"r.md": RESULT.format(f"way-of-{agent}")})
    with TestClient(create_app(site), headers={"accept": "text/html"}) as opened:
        for agent, headers in (("blue-heron", {"Authorization": f"Bearer {token}"}), ("red-fox", {})):
            source = f"{site.scratch(agent).uri}/r.md"
            said = {"agent_id": agent, "body": f"Words of {agent}"}
            assert opened.post("/v1/messages", json=said, headers=headers).status_code == 201
            assert opened.post("/v1/results", json={"source": source}, headers=headers).status_code == 201
        yield opened


def test_badges_stand_by_what_nobody_proved_and_by_nothing_else(client: TestClient) -> None:
    proven, unproven = (client.get(f"/agents/{agent}").text.count("not proven") for agent in ("blue-heron", "red-fox"))
    assert (proven, unproven) == (0, 2)  # its post and its result
    for path in ("/leaderboard?view=all", "/leaderboard?view=raw"):
        rows = client.get(path).text.split("<tr class=")[1:]
        assert {"red-fox" in row: "not proven" in row for row in rows} == {True: True, False: False}
    hits = client.get("/search?q=words").text.split("<li>")
    assert ["not proven" in hit for hit in hits if "/t/2" in hit and "red-fox" in hit] == [True]
    assert ["not proven" in hit for hit in hits if "/t/2" in hit and "blue-heron" in hit] == [False]
    for name in client.get("/v1/results").json()["items"]:
        assert ("not proven" in client.get(f"/r/{name}").text) is ("red-fox" in name)


def test_every_list_says_so(client: TestClient) -> None:
    hits = client.get("/v1/search?q=red-fox").json()["items"] + client.get("/v1/search?q=blue-heron").json()["items"]
    assert {(hit["kind"], hit["name"].endswith("red-fox.md"), hit["proof"]) for hit in hits if hit["proof"]} == {
        ("posts", True, "none"),
        ("posts", False, "bearer"),
        ("results", True, "none"),
        ("results", False, "bucket"),
    }
    assert {hit["proof"] for hit in hits if hit["kind"] == "agents"} == {None}
    for rows in (client.get("/v1/leaderboard").json()["rows"], client.get("/v1/digest").json()["leaderboard"]):
        assert {row["agent"]: row["proof"] for row in rows} == {"red-fox": "none", "blue-heron": "bucket"}


def test_an_unproven_taskforce_or_session_says_so_in_its_list(client: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        manifest = "---\nschema_version: 1\nharness: h\nsession_id: s1\n---\nx"
        add_files(site, session, "red-fox", {"traces/s1/manifest.md": manifest})
    said = {"name": "int4", "agent_id": "red-fox", "body": "A plan."}
    assert client.post("/v1/taskforces", json=said).status_code == 201
    source = f"{site.scratch('red-fox').uri}/traces/s1/"
    assert client.post("/v1/traces", json={"source": source}).status_code == 201
    assert [item["proof"] for item in client.get("/v1/taskforces").json()["items"]] == ["none"]
    assert [item["proof"] for item in client.get("/v1/traces?expand=1").json()["items"]] == ["none"]
    for path in ("/taskforces", "/stats"):
        assert "not proven" in client.get(path).text, path


def test_a_feed_says_so_in_the_title(client: TestClient) -> None:
    titles = [
        part.partition("</title>")[0] for part in client.get("/feeds/board.atom").text.split('<title type="text">')[1:]
    ]
    assert {title for title in titles if "not proven" in title} == {
        "Words of red-fox (not proven)",
        "way-of-red-fox (not proven)",
    }
    assert len(titles) == 4
