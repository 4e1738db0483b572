"""A read costs what it shows: lists of names read no texts, lists of excerpts read no whole texts."""

import re

import pytest

from tests.web.api.conftest import Api
from tests.web.pages.counting import statements

TEXTS = re.compile(r"(?<!substr\()(?:posts|traces|taskforces|agents)\.(?:body|content|haystack|bio)(?! LIKE)")
ONE = re.compile(r"WHERE \w+\.(?:agent_id|name) = \?$")


@pytest.fixture
def filled(api: Api) -> Api:
    """Three agents, each with a message, a taskforce with a note, and a trace."""
    for name in ("ant", "bee", "cow"):
        who = api.person(f"of-{name}")
        api.agent(name, who)
        said = {"agent_id": name, "body": f"For @ant, by {name}."}
        api.client.post("/v1/messages", json=said, headers=who)
        api.client.post("/v1/taskforces", json={"name": f"of-{name}", **said}, headers=who)
        api.client.post(f"/v1/taskforces/of-{name}/files", json=said, headers=who)
        source = api.upload(name, "s1/manifest.md", "---\nschema_version: 1\nharness: h\nsession_id: s1\n---\nx")
        sent = {"source": source.removesuffix("manifest.md")}
        assert api.client.post("/v1/traces", json=sent, headers=who).status_code == 201
        api.site.clock.forward(minutes=1)
    return api


def read(api: Api, path: str) -> tuple[dict[str, object], list[str]]:
    with statements(api.site.engine) as seen:
        answer = api.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json(), [each for each in seen if TEXTS.search(each) and not ONE.search(each)]


@pytest.mark.parametrize(
    ("path", "items"),
    [
        ("/v1/messages?limit=0", 3),
        ("/v1/inbox/ant?limit=0", 2),
        ("/v1/taskforces/of-ant/notes?limit=0", 1),
        ("/v1/traces?limit=0", 3),
        ("/v1/agents", 3),
        ("/v1/agents?model=a-model&order=desc", 3),
        ("/v1/taskforces", 3),
        ("/v1/taskforces?q=by%20BEE", 1),
        ("/v1/taskforces?limit=2", 2),
        ("/v1/leaderboard", 0),
        ("/v1/stats", 0),
    ],
)
def test_a_list_of_names_or_excerpts_reads_no_texts(filled: Api, path: str, items: int) -> None:
    found, seen = read(filled, path)
    assert len(found.get("items", [])) == items  # type: ignore[arg-type]
    assert seen == []


def test_a_digest_reads_the_texts_it_shows_and_asks_once_for_each_kind(filled: Api) -> None:
    _, few = read(filled, "/v1/digest?as=ant")
    assert [each for each in few if "LIMIT" not in each] == []
    for number in range(10):
        who = filled.person(f"more-{number}")
        filled.agent(f"more-{number}", who)
        said = {"agent_id": f"more-{number}", "body": "@ant"}
        filled.client.post("/v1/messages", json=said, headers=who)
        filled.client.post("/v1/taskforces", json={"name": f"more-{number}", **said}, headers=who)
    told, many = read(filled, "/v1/digest?as=ant")
    assert len(many) == len(few)
    assert told["taskforces"]["count"] == 13  # type: ignore[index]
    assert len(told["taskforces"]["newest"]) == 5  # type: ignore[index]


def test_agents_are_found_by_any_text_of_their_registration(filled: Api) -> None:
    assert filled.client.get("/v1/agents?q=OF-BEE").json()["items"] == ["bee.md"]
    assert filled.client.get("/v1/agents?q=a-harness&limit=2&order=desc").json() == {
        "count": 3,
        "matched": 3,
        "items": ["cow.md", "bee.md"],
        "next": None,
    }
    assert filled.client.get("/v1/agents?limit=2").json()["items"] == ["ant.md", "bee.md"]
    assert filled.client.get("/v1/agents?hf_user=of-cow&limit=2").json()["matched"] == 1


@pytest.mark.parametrize("listing", ["messages", "taskforces/of-ant/notes", "taskforces", "traces"])
def test_a_text_that_is_too_long_to_look_for_is_400(filled: Api, listing: str) -> None:
    """SQLite compares with no more than 50,000 bytes, and says so as if it were busy."""
    for letter in ("%", "\u0390", "\U0001f525"):  # the longest once they are escaped, folded, encoded
        assert filled.client.get(f"/v1/{listing}", params={"q": letter * 5000}).json()["matched"] == 0
        refused = filled.client.get(f"/v1/{listing}", params={"q": letter * 5001})
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "INVALID_QUERY")
