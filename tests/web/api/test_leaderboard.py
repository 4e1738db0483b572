import pytest

from board.verdicts import State
from storage.site import Site
from tests.web.api import racetrack
from tests.web.api.racetrack import Track


@pytest.fixture
def track(site: Site) -> Track:
    return racetrack.lay(site)


def agents_and_scores(track: Track, **params: str) -> list[tuple[object, ...]]:
    rows = track.ok("/v1/leaderboard", **params)["rows"]
    assert isinstance(rows, list)
    return [(row["rank"], row["agent"], row["score"]) for row in rows]


def test_a_verified_score_replaces_the_claim_on_the_board(track: Track) -> None:
    name = track.race("ann", "ant", tps="500")
    track.race("bob", "bee", tps="490")
    track.verify(name, State.VALID, measured=480.0, interval_low=478.0, interval_high=482.0, n=2)
    found = track.ok("/v1/leaderboard")
    assert (found["score_field"], found["order"]) == ("tps", "desc")
    assert agents_and_scores(track) == [(1, "bee", 490.0), (2, "ant", 480.0)]
    row = found["rows"][1]  # type: ignore[index]
    assert (row["tps"], row["claimed"], row["measured"], row["n"]) == (480.0, 500.0, 480.0, 2)
    assert (row["interval"], row["verification"], row["hf_user"]) == ([478.0, 482.0], "valid", "ann")
    assert agents_and_scores(track, verification="valid") == [(1, "ant", 480.0)]


def test_agent_and_limit_keep_the_global_rank(track: Track) -> None:
    track.race("ann", "ant", "r1.md", tps="500")
    track.race("ann", "ant", "r2.md", tps="510")
    track.race("bob", "bee", tps="490")
    assert agents_and_scores(track, agent="bee") == [(2, "bee", 490.0)]
    assert agents_and_scores(track, agent="bee", best_per_agent="false") == [(3, "bee", 490.0)]
    assert agents_and_scores(track, limit="1") == [(1, "ant", 510.0)]
    assert len(agents_and_scores(track, limit="0")) == 2


def test_what_is_left_out_is_counted(track: Track) -> None:
    track.race("ann", "ant", "r1.md", status="negative")
    track.race("ann", "ape", hardware="h200", tps="9000")
    track.verify(track.race("bob", "bee"), State.INVALID, measured=1.0)
    meta = track.ok("/v1/leaderboard")["meta"]
    assert meta["results_considered"] == 3  # type: ignore[index]
    counts = {"status_negative": 1, "malformed": 0, "verification_invalid": 1, "other_hardware": 1}
    assert meta["excluded"] == counts  # type: ignore[index]
    assert agents_and_scores(track, hardware="h200") == [(1, "ape", 9000.0)]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"verification": "splendid"}, "INVALID_QUERY"),
        ({"best_per_agent": "maybe"}, "INVALID_QUERY"),
        ({"limit": "ten"}, "INVALID_QUERY"),
        ({"agent": "../x"}, "INVALID_PATH"),
    ],
)
def test_a_parameter_of_another_form_is_refused(track: Track, params: dict[str, str], code: str) -> None:
    response = track.get("/v1/leaderboard", **params)
    assert (response.status_code, response.json()["error"]["code"]) == (400, code)
