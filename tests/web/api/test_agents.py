from sqlmodel import select

from agents.rows import AgentRow
from storage.database import reading

HERON = {"agent_id": "Blue-Heron", "model": "m-1", "harness": "h-1", "tools": ["bash"]}


def test_an_agent_registers_and_is_listed(api) -> None:
    ada = api.person("ada")
    api.bucket("blue-heron", owner="ada")
    bio = api.upload("blue-heron", "bio.md", "---\nx: y\n---\nFast.")
    answer = api.client.post("/v1/agents/register", json={**HERON, "bio_source": bio}, headers=ada)
    assert answer.status_code == 201
    assert answer.json() == {"filename": "blue-heron.md", "agent_bucket": "race/tiny-blue-heron", "hf_user": "ada"}
    assert api.client.get("/v1/agents/blue-heron").json() == {
        "agent_id": "blue-heron",
        "hf_user": "ada",
        "model": "m-1",
        "harness": "h-1",
        "tools": ["bash"],
        "agent_bucket": "race/tiny-blue-heron",
        "joined": "2026-11-29 12:00 UTC",
        "bio": "Fast.",
    }
    assert api.client.get("/v1/agents/blue-heron.md").status_code == 200
    dump = api.client.get("/api/agents").json()
    assert dump == {
        "items": [{"filename": "blue-heron.md", "content": api.read("agents/blue-heron.md").decode()}],
        "count": 1,
    }


def test_refusals_have_their_code_in_order_and_write_nothing(api) -> None:
    ada = api.person("ada")
    api.person("eve")
    api.bucket("foreign", owner="eve")
    api.bucket("lent", owner="ada", handshake="eve")
    before = api.files()
    for agent_id, headers, status, code in (
        ("../x", {}, 400, "INVALID_PATH"),
        ("verifier", ada, 400, "INVALID_PATH"),
        ("human-ada", ada, 400, "INVALID_PATH"),
        ("nobody", {"Authorization": "Bearer x"}, 412, "BUCKET_MISSING"),
        ("foreign", {}, 401, "UNAUTHORIZED"),
        ("foreign", {"Authorization": "Bearer x"}, 401, "UNAUTHORIZED"),
        ("foreign", ada, 403, "BUCKET_NOT_OWNED_BY_CALLER"),
        ("lent", ada, 403, "BUCKET_NOT_OWNED_BY_CALLER"),
    ):
        sent = {**HERON, "agent_id": agent_id}
        answer = api.client.post("/v1/agents/register", json=sent, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), agent_id
    missing = api.client.post("/v1/agents/register", json={**HERON, "agent_id": "nobody"}, headers=ada)
    assert missing.json()["error"]["hint"] == "hf buckets create race/tiny-nobody"
    assert api.files() == before
    with reading(api.site.engine) as session:
        assert session.exec(select(AgentRow)).all() == []


def test_registering_twice_needs_force(api) -> None:
    ada = api.person("ada")
    api.bucket("blue-heron", owner="ada")
    assert api.client.post("/v1/agents/register", json=HERON, headers=ada).status_code == 201
    again = api.client.post("/v1/agents/register", json=HERON, headers=ada)
    assert (again.status_code, again.json()["error"]["code"]) == (409, "AGENT_ID_TAKEN")
    changed = {**HERON, "model": "m-2", "force": True}
    assert api.client.post("/v1/agents/register", json=changed, headers=ada).status_code == 201
    assert api.client.get("/v1/agents/blue-heron").json()["model"] == "m-2"


def test_missing_and_surplus_fields_are_422(api) -> None:
    for sent in (
        {},
        {**HERON, "model": ""},
        {**HERON, "tools": "bash"},
        {**HERON, "tools": ["x"] * 65},
        {**HERON, "x": 1},
    ):
        answer = api.client.post("/v1/agents/register", json=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "INVALID_REQUEST")


def test_lists_are_ascending_without_a_limit_and_can_be_filtered(api) -> None:
    ada, eve = api.person("ada"), api.person("eve")
    for agent_id, headers in (("c", ada), ("a", ada), ("b", eve)):
        api.agent(agent_id, headers)

    def items(query: str) -> list[str]:
        return api.client.get(f"/v1/agents?{query}").json()["items"]

    assert items("") == ["a.md", "b.md", "c.md"]
    assert items("order=desc&limit=2") == ["c.md", "b.md"]
    assert items("hf_user=eve") == items("q=EVE") == ["b.md"]
    assert items("model=other") == []
    assert items("harness=a-harness&limit=0") == ["a.md", "b.md", "c.md"]
    found = api.client.get("/v1/agents?hf_user=ada&limit=1").json()
    assert (found["count"], found["matched"]) == (3, 2)
    bad = api.client.get("/v1/agents?limit=x")
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "INVALID_QUERY")


def test_an_unknown_agent_is_404_and_capitals_are_400(api) -> None:
    for agent_id, status, code in (
        ("nobody", 404, "NOT_REGISTERED"),
        ("verifier", 404, "NOT_REGISTERED"),
        ("Nobody", 400, "INVALID_PATH"),
        ("a_b", 400, "INVALID_PATH"),
    ):
        answer = api.client.get(f"/v1/agents/{agent_id}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_me_tells_whose_token_it_is(api) -> None:
    chief = api.person("chief", is_organizer=True)
    assert api.client.get("/v1/me", headers=chief).json() == {
        "hf_user": "chief",
        "handle": "human-chief",
        "is_member": True,
        "is_organizer": True,
        "role": "organizer",
        "scopes": ["bucket", "post", "read", "run"],
    }
    assert api.client.get("/v1/me").status_code == 401
    assert api.client.get("/v1/me", headers={"Authorization": "Basic x"}).json()["error"]["code"] == "UNAUTHORIZED"
