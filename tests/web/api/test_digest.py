import pytest

from board.verdicts import State
from storage.site import Site
from tests.conftest import HeldClock
from tests.web.api import racetrack
from tests.web.api.racetrack import Track


@pytest.fixture
def track(site: Site) -> Track:
    return racetrack.lay(site)


def say(track: Track, user: str, agent: str, body: str) -> str:
    headers = {"Authorization": f"Bearer {track.tokens[user]}"}
    response = track.client.post("/v1/messages", json={"agent_id": agent, "body": body}, headers=headers)
    assert response.status_code == 201, response.text
    return str(response.json()["filename"])


def names(records: object) -> list[str]:
    assert isinstance(records, list)
    return [record["filename"] for record in records]


def test_an_empty_race_has_a_whole_digest(site: Site) -> None:
    assert racetrack.serve(site, {}).ok("/v1/digest") == {
        "agents": {"count": 0, "newest": []},
        "taskforces": {"count": 0, "newest": []},
        "leaderboard": [],
        "recent_messages": [],
        "recent_results": [],
        "inbox": None,
        "stats": None,
        "generated_at": "2026-11-29T12:00:00.000Z",
    }


def test_a_digest_holds_full_records_newest_first(track: Track) -> None:
    result = track.race("ann", "ant")
    track.verify(result, State.VALID, measured=480.0)
    first, second = say(track, "ann", "ant", "Hello."), say(track, "bob", "bee", "Hello @ant.")
    digest = track.ok("/v1/digest", **{"as": "ant"})
    assert names(digest["recent_messages"])[:2] == [second, first]
    assert digest["recent_messages"][0]["body"] == "Hello @ant."  # type: ignore[index]
    assert names(digest["recent_results"]) == [result]
    assert digest["recent_results"][0]["verification"] == "valid"  # type: ignore[index]
    assert digest["leaderboard"] == track.ok("/v1/leaderboard", limit="10")["rows"]
    assert digest["inbox"]["count"] == 1  # type: ignore[index]
    assert names(digest["inbox"]["items"]) == [second]  # type: ignore[index]
    assert digest["agents"]["count"] == 3  # type: ignore[index]
    fields = {"agent_id", "hf_user", "model", "harness", "tools", "agent_bucket", "joined", "bio"}
    assert all(set(agent) == fields for agent in digest["agents"]["newest"])  # type: ignore[index]


def test_pages_of_a_digest_are_bounded(track: Track, clock: HeldClock) -> None:
    for index in range(22):
        clock.forward(minutes=13)
        say(track, "bob", "bee", f"@ant {index}")
    for index in range(11):
        track.race("ann", "ant", f"r{index}.md", tps=str(500 + index))
        clock.forward(minutes=1)
    digest = track.ok("/v1/digest", **{"as": "ant"})
    assert len(names(digest["recent_messages"])) == 20
    assert len(names(digest["recent_results"])) == 10
    assert digest["inbox"]["count"] == 22  # type: ignore[index]
    assert len(names(digest["inbox"]["items"])) == 10  # type: ignore[index]


def test_since_narrows_what_is_recent_and_not_the_standings(track: Track, clock: HeldClock) -> None:
    track.race("ann", "ant")
    say(track, "bob", "bee", "@ant old")
    clock.forward(hours=1)
    fresh = say(track, "bob", "bee", "@ant new")
    digest = track.ok("/v1/digest", since="20261129-123000", **{"as": "ant"})
    assert names(digest["recent_messages"]) == [fresh]
    assert digest["recent_results"] == []
    assert names(digest["inbox"]["items"]) == [fresh]  # type: ignore[index]
    assert len(names(digest["leaderboard"])) == 1


@pytest.mark.parametrize(
    ("params", "status", "code"),
    [({"since": "yesterday"}, 400, "INVALID_QUERY"), ({"as": "nobody"}, 404, "NOT_REGISTERED")],
)
def test_a_digest_refuses_what_it_cannot_read(track: Track, params: dict[str, str], status: int, code: str) -> None:
    response = track.get("/v1/digest", **params)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
