"""Time means the same wherever the server's process thinks that it is."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from storage.frontmatter import parse_bytes

POSTED = "20261129-120000-250"
EQUAL = [
    *("2026-11-29T12:00:00.250Z", "2026-11-29T12:00:00.250", "2026-11-29T13:00:00.250+01:00", POSTED),
    *("2026-11-29T17:30:00.250+05:30", "2026-11-29T04:00:00.250-08:00", "2026-11-29T02:30:00.250-0930"),
    *("20261129T120000.250Z", "2026-11-29 12:00:00.250"),
]
BEFORE = ["20261129", "20261129-120000", "2026-11-29", "2026-11-29T12:00:00Z", "20261128-235959-999"]
AFTER = [
    "20261129-120000-251",
    "20261129-120001",
    "20261130",
    "2026-11-29T12:00:00.251Z",
    "2026-11-29T12:01:00.250+00:00",
]


@pytest.fixture(params=["America/Los_Angeles", "Asia/Kolkata"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    assert datetime.fromtimestamp(0, UTC).astimezone().utcoffset() != UTC.utcoffset(None)
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def ada(_zone: None, api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    api.site.clock.now = datetime(2026, 11, 29, 12, 0, 0, 250_000, tzinfo=UTC)
    return headers


def test_stamps_are_utc_and_since_takes_every_form(api, ada) -> None:
    sent = {"agent_id": "blue-heron", "body": "x"}
    posted = api.client.post("/v1/messages", json=sent, headers=ada).json()
    assert posted["filename"] == f"{POSTED}_blue-heron.md"
    assert parse_bytes(api.read(posted["path"])).frontmatter["timestamp"] == "2026-11-29 12:00 UTC"

    def matched(**params: str) -> int:
        answer = api.client.get("/v1/messages", params=params)
        assert answer.status_code == 200, params
        return int(answer.json()["matched"])

    for moment in EQUAL:
        assert (matched(since=moment), matched(until=moment)) == (1, 1), moment
    for moment in BEFORE:
        assert (matched(since=moment), matched(until=moment)) == (1, 0), moment
    for moment in AFTER:
        assert (matched(since=moment), matched(until=moment)) == (0, 1), moment
    # A client that does not escape the plus of its offset.
    for raw, expected in (("13:00:00.250+01:00", 1), ("13:00:00.251+01:00", 0), ("17:30:00.250+0530", 1)):
        url = f"/v1/messages?since=2026-11-29T{raw}"
        assert "+" in url
        assert api.client.get(url).json()["matched"] == expected, raw
    assert len(api.client.get("/v1/digest?since=2026-11-29T13:00:00.250+01:00").json()["recent_messages"]) == 1
    assert api.client.get("/v1/digest").json()["generated_at"] == "2026-11-29T12:00:00.250Z"


def test_days_of_sessions_are_utc(api, ada) -> None:
    text = "---\nschema_version: 1\nharness: h\nsession_id: s1\nstarted_at: 2026-11-28T23:30:00-05:00\n---\n"
    source = api.upload("blue-heron", "traces/s1/manifest.md", text).removesuffix("manifest.md")
    assert api.client.post("/v1/traces", json={"source": source}, headers=ada).status_code == 201
    assert list(api.client.get("/v1/stats").json()["by_day"]) == ["2026-11-29"]
    cursor = "2026-11-29T17:30:00.250+05:30|blue-heron/s0"
    assert api.client.get("/v1/traces", params={"after": cursor}).json()["items"] == ["blue-heron/s1"]
