import pytest
from httpx import Response

from board import results
from board.verdicts import State
from storage.database import reading
from storage.site import Site
from tests.board import racers
from tests.web.api import racetrack
from tests.web.api.racetrack import Track


@pytest.fixture
def track(site: Site) -> Track:
    return racetrack.lay(site)


def test_a_posted_result_can_be_read_everywhere(track: Track) -> None:
    response = track.post("ann", track.stage("ant", racers.result_text()))
    assert response.status_code == 201
    name = response.json()["filename"]
    assert response.json() == {"filename": name, "via": "bucket", "path": f"results/{name}"}
    record = track.ok(f"/v1/results/{name}")
    assert set(record) == {"filename", "frontmatter", "body", "proof", "verification", "reason"}
    assert record["verification"] == "pending"
    assert record["frontmatter"]["agent"] == "ant"  # type: ignore[index]
    assert track.ok("/v1/results") == {"count": 1, "matched": 1, "items": [name], "next": None}
    assert track.ok("/v1/results", expand="true")["items"] == [record]
    assert track.ok("/api/verification") == {name: "pending"}
    dump = track.ok("/api/results")
    assert dump["count"] == 1
    assert dump["items"][0]["filename"] == name  # type: ignore[index]
    assert "\ntps: 507.3\n" in dump["items"][0]["content"]  # type: ignore[index]


def test_a_result_whose_post_names_no_submission_stays_pending_with_the_reason(track: Track) -> None:
    name = track.race("ann", "ant")
    row = track.ok("/v1/leaderboard")["rows"][0]  # type: ignore[index]
    assert (row["filename"], row["verification"], row["measured"]) == (name, "pending", None)
    with reading(track.site.engine) as session:
        assert results.get_row(session, name).reason


def test_results_are_filtered_by_status_and_verification(track: Track) -> None:
    plain = track.race("ann", "ant", "r1.md")
    negative = track.race("ann", "ant", "r2.md", status="negative")
    valid = track.race("bob", "bee")
    undecided = track.race("bob", "bee", "r2.md", method="other")
    track.verify(valid, State.VALID, measured=480.0)
    track.verify(undecided, State.INCONCLUSIVE)

    def items(**params: str) -> object:
        return track.ok("/v1/results", order="asc", **params)["items"]

    assert items(status="negative") == [negative]
    assert items(status="agent-run") == [plain, valid, undecided]
    assert items(verification="valid") == [valid]
    assert items(verification="pending", status="agent-run") == [plain, undecided]
    assert items(verification="invalid") == []
    assert items(verification="valid,pending", agent="bee") == [valid, undecided]
    assert track.ok("/v1/results", verification="valid")["count"] == 4


@pytest.mark.parametrize("params", [{"status": "great"}, {"verification": "valid,splendid"}, {"limit": "many"}])
def test_a_filter_of_another_form_is_an_invalid_query(track: Track, params: dict[str, str]) -> None:
    response = track.get("/v1/results", **params)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_QUERY")


@pytest.mark.parametrize(
    "fields",
    [{"ppl": ""}, *({"tps": bad} for bad in (".nan", ".inf", "8:26", "9" * 401, "0", "-1", "507.3 tok/s"))],
    ids=str,
)
def test_bad_input_is_invalid_frontmatter_and_leaves_nothing(track: Track, fields: dict[str, str]) -> None:
    response = track.post("ann", track.stage("ant", racers.result_text(**fields)))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "INVALID_FRONTMATTER")
    assert track.ok("/v1/results")["count"] == 0
    assert track.ok("/api/verification") == {}
    assert track.ok("/v1/leaderboard")["meta"]["results_considered"] == 0  # type: ignore[index]


def test_the_codes_of_refused_posts_are_the_contracts(track: Track) -> None:
    source = track.stage("ant", racers.result_text())

    def code(response: Response) -> tuple[int, str]:
        return response.status_code, response.json()["error"]["code"]

    assert code(track.post("bob", source)) == (403, "BUCKET_NOT_OWNED_BY_CALLER")
    assert code(track.post("", source)) == (401, "UNAUTHORIZED")
    assert code(track.post("ann", source.replace("r.md", "../r.md"))) == (400, "INVALID_PATH")
    assert code(track.post("ann", source.replace("r.md", "none.md"))) == (404, "SOURCE_NOT_FOUND")
    loud = track.stage("ant", racers.result_text(broadcast="true"), "loud.md")
    assert code(track.post("ann", loud)) == (403, "NOT_ORGANIZER")
    posing = track.stage("ant", racers.result_text(type="verification"), "posing.md")
    assert code(track.post("ann", posing)) == (400, "INVALID_FRONTMATTER")
    assert track.ok("/v1/results")["count"] == 0
    first = track.post("ann", source).json()["filename"]
    again = track.post("ann", source)
    assert code(again) == (409, "ALREADY_PROMOTED")
    assert again.json()["error"]["hint"] == first
    assert code(track.get("/v1/results/20200101-000000-000_x.md")) == (404, "NOT_FOUND")


def test_both_or_neither_variant_is_malformed(track: Track) -> None:
    headers = {"Authorization": f"Bearer {track.tokens['ann']}"}
    for body in ({}, {"source": "x", "body": "y"}, {"source": 5}):
        response = track.client.post("/v1/results", json=body, headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (422, "INVALID_REQUEST")
