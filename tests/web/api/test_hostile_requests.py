"""Whatever a request says, it is answered in the one shape of an error, never with a bare 500."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest

STRANGE = [
    "%00",
    "%ff",
    "%C3%28",
    "..",
    "%2e%2e",
    "..%2f..",
    "a%0Ab",
    quote("💥" * 50),
    "x" * 3000,
    "%25",
    "'--",
    "[",
    "{}",
]
GETS = ["/v1/messages/{}", "/v1/agents/{}", "/v1/inbox/{}"]
PARAMS = ["since", "until", "agent", "type", "via", "q", "expand", "limit", "order", "after", "before"]


@pytest.mark.parametrize("value", STRANGE)
def test_strange_names_and_parameters_are_refused_or_find_nothing(api, value: str) -> None:
    urls = [path.format(value) for path in GETS]
    urls += [f"/v1/messages?{name}={value}" for name in PARAMS]
    urls += [f"/v1/agents?{name}={value}" for name in ("q", "hf_user", "model", "harness", "limit", "order")]
    for url in urls:
        answer = api.client.get(url)
        assert answer.status_code in (200, 307, 400, 404), url
        assert answer.status_code == 200 or answer.json()["error"]["code"], url


@pytest.mark.parametrize(
    "value", ["a\0b", "💥", "../..", "x" * 5000, "\u2028", "[", "%s", "", None, 5, [], {"a": 1}, True]
)
def test_strange_fields_are_refused_or_stored(api, value) -> None:
    ada = api.person("ada")
    api.agent("blue-heron", ada)
    good = {"agent_id": "blue-heron", "body": "x", "type": "note", "refs": "x.md", "broadcast": False}
    for field in good:
        answer = api.client.post("/v1/messages", json={**good, field: value}, headers=ada)
        assert answer.status_code in (201, 400, 403, 404, 422, 429), field
        api.site.clock.forward(minutes=5)
    answer = api.client.post("/v1/messages", json={"source": value}, headers=ada)
    assert answer.status_code in (400, 422)
    assert api.client.get("/v1/messages?expand=1").status_code == 200


def test_posts_at_the_same_moment_get_names_of_their_own(api) -> None:
    ada = api.person("ada")
    agents = [f"a{n}" for n in range(6)]
    for agent in agents:
        api.agent(agent, ada)
        api.site.clock.forward(minutes=1)

    def post(agent: str) -> str:
        return api.client.post("/v1/messages", json={"agent_id": agent, "body": "x"}, headers=ada).json()["filename"]

    with ThreadPoolExecutor(6) as pool:
        names = list(pool.map(post, agents * 3))
    stamps = {name.partition("_")[0] for name in names}
    assert len(stamps) == 18
    assert api.client.get("/v1/messages").json()["count"] == 18


def test_a_request_larger_than_any_record_is_not_read(api) -> None:
    ada = api.person("ada")
    for url in ("/v1/messages", "/v1/agents/register"):
        answer = api.client.post(url, content=b" " * 3_000_000, headers={**ada, "Content-Type": "application/json"})
        assert answer.status_code == 413
