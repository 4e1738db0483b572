import pytest
from sqlmodel import select

from agents.rows import AuditRow, SpentRow
from board.rows import InboxRow, PostRow
from storage.database import reading
from storage.frontmatter import parse_bytes


def rows(api) -> list[int]:
    with reading(api.site.engine) as session:
        return [len(session.exec(select(table)).all()) for table in (PostRow, InboxRow, SpentRow, AuditRow)]


def code(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


@pytest.fixture
def eve(api) -> dict[str, str]:
    headers = api.person("eve")
    api.agent("red-kettle", headers)
    return headers


def test_a_raw_post_is_delivered_and_read_back(api, ada, eve) -> None:
    sent = {"agent_id": "blue-heron", "body": "Hi @red-kettle and @human-eve, not `@nobody`."}
    answer = api.client.post("/v1/messages", json=sent, headers=ada)
    name = "20261129-120000-000_blue-heron.md"
    assert (answer.status_code, answer.json()) == (
        201,
        {
            "filename": name,
            "via": "raw",
            "path": f"message_board/{name}",
            "mentions_delivered": ["red-kettle", "human-eve"],
            "mentions_dropped": [],
            "broadcast": False,
        },
    )
    assert (
        api.read(f"inbox/red-kettle/{name}") == api.read(f"inbox/human-eve/{name}") == api.read(f"message_board/{name}")
    )
    record = api.client.get(f"/v1/messages/{name}").json()
    assert record == {
        "filename": name,
        "frontmatter": {"agent": "blue-heron", "timestamp": "2026-11-29 12:00 UTC", "via": "raw", "type": "agent"},
        "body": sent["body"],
        "proof": "bearer",
    }
    assert api.client.get("/v1/inbox/red-kettle").json()["items"] == [name]
    assert api.client.get("/v1/inbox/blue-heron").json()["items"] == []


def test_a_source_is_promoted_once_and_a_retry_names_the_file(api, ada) -> None:
    source = api.upload("blue-heron", "posts/one.md", "---\ntitle: One\nagent: eve\ntype: status\n---\n\nText")
    first = api.client.post("/v1/messages", json={"source": source}, headers=ada)
    assert (first.status_code, first.json()["via"]) == (201, "bucket")
    document = parse_bytes(api.read(first.json()["path"]))
    assert document.frontmatter["agent"] == "blue-heron"
    assert list(document.frontmatter)[-2:] == ["title", "type"]
    assert document.frontmatter["type"] == "status"
    before = api.files(), rows(api)
    again = api.client.post("/v1/messages", json={"source": source}, headers=ada)
    assert code(again) == (409, "ALREADY_PROMOTED")
    assert again.json()["error"]["hint"] == first.json()["filename"]
    assert (api.files(), rows(api)) == before
    api.upload("blue-heron", "posts/one.md", "New text")
    assert api.client.post("/v1/messages", json={"source": source}, headers=ada).status_code == 201


def test_bad_sources_have_their_code_and_write_nothing(api, ada, eve) -> None:
    mine = api.upload("blue-heron", "a.md", "x")
    theirs = api.upload("red-kettle", "a.md", "x")
    broken = api.upload("blue-heron", "broken.md", "---\ntps: 8:26\n---\n")
    loud = api.upload("blue-heron", "loud.md", "---\nbroadcast: true\n---\nx")
    posing = api.upload("blue-heron", "posing.md", "---\ntype: verification\n---\nx")
    large = api.upload("blue-heron", "large.md", "x" * 262_145)
    before = api.files(), rows(api)
    for source, headers, expected in (
        (mine.replace("a.md", "../tiny-red-kettle/a.md"), ada, (400, "INVALID_PATH")),
        (mine.replace("a.md", ".."), ada, (400, "INVALID_PATH")),
        (mine.replace("a.md", "/etc/passwd"), ada, (400, "INVALID_PATH")),
        ("/etc/passwd", ada, (400, "INVALID_PATH")),
        (mine.replace("blue", "Blue"), ada, (400, "INVALID_PATH")),
        (theirs, ada, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        (mine, eve, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        ("hf://buckets/race/tiny-main-bucket/agents/blue-heron.md", ada, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        ("hf://buckets/race-admin/tiny-audit/x.md", ada, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        (mine, {}, (401, "UNAUTHORIZED")),
        (mine, {"Authorization": "Bearer pdk_wrong"}, (401, "UNAUTHORIZED")),
        (mine.replace("a.md", "none.md"), ada, (404, "SOURCE_NOT_FOUND")),
        ("hf://buckets/race/tiny-nobody/a.md", ada, (404, "NOT_REGISTERED")),
        (broken, ada, (400, "INVALID_FRONTMATTER")),
        (posing, ada, (400, "INVALID_FRONTMATTER")),
        (loud, ada, (403, "NOT_ORGANIZER")),
        (large, ada, (413, "SYNC_TOO_LARGE")),
    ):
        answer = api.client.post("/v1/messages", json={"source": source}, headers=headers)
        assert code(answer) == expected, source
    assert (api.files(), rows(api)) == before


def test_bad_raw_posts_have_their_code_and_write_nothing(api, ada, eve) -> None:
    before = api.files(), rows(api)
    for sent, headers, expected in (
        ({"agent_id": "blue-heron", "body": "x"}, {}, (401, "UNAUTHORIZED")),
        ({"agent_id": "blue-heron", "body": "x"}, eve, (403, "IDENTITY_MISMATCH")),
        ({"agent_id": "human-ada", "body": "x"}, eve, (403, "IDENTITY_MISMATCH")),
        ({"agent_id": "human-ada", "body": "x"}, {}, (401, "UNAUTHORIZED")),
        ({"agent_id": "Blue-Heron", "body": "x"}, ada, (400, "INVALID_PATH")),
        ({"agent_id": "../x", "body": "x"}, ada, (400, "INVALID_PATH")),
        ({"agent_id": "nobody", "body": "x"}, ada, (404, "NOT_REGISTERED")),
        ({"agent_id": "verifier", "body": "x"}, ada, (404, "NOT_REGISTERED")),
        ({"agent_id": "blue-heron", "body": "x", "broadcast": True}, ada, (403, "NOT_ORGANIZER")),
        ({"agent_id": "blue-heron", "body": "x", "type": "verification"}, ada, (400, "INVALID_FRONTMATTER")),
        ({"agent_id": "blue-heron", "body": "a\0b"}, ada, (400, "INVALID_REQUEST")),
        ({"agent_id": "blue-heron", "body": "x", "type": "a\0b"}, ada, (400, "INVALID_FRONTMATTER")),
        ({"agent_id": "blue-heron", "body": "x" * 262_144}, ada, (413, "SYNC_TOO_LARGE")),
    ):
        answer = api.client.post("/v1/messages", json=sent, headers=headers)
        assert code(answer) == expected, sent
    assert (api.files(), rows(api)) == before


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"source": "hf://buckets/race/tiny-blue-heron/a.md", "agent_id": "blue-heron", "body": "x"},
        {"source": "hf://buckets/race/tiny-blue-heron/a.md", "body": "x"},
        {"agent_id": "blue-heron"},
        {"body": "x"},
        {"agent_id": "blue-heron", "body": ""},
        {"agent_id": "blue-heron", "body": 5},
        {"agent_id": "blue-heron", "body": "x", "surprise": 1},
        [],
    ],
)
def test_both_or_neither_variant_is_422(api, ada, sent) -> None:
    answer = api.client.post("/v1/messages", json=sent, headers=ada)
    assert code(answer) == (422, "INVALID_REQUEST")
    assert answer.json()["detail"]


@pytest.mark.parametrize("data", [b"{", b"", b'{"agent_id": "blue-heron", "body": "\\ud800"}'])
def test_malformed_json_is_422(api, ada, data) -> None:
    headers = {**ada, "Content-Type": "application/json"}
    assert code(api.client.post("/v1/messages", content=data, headers=headers)) == (422, "INVALID_REQUEST")


@pytest.mark.parametrize("data", [b"\xff", b"[" * 100_000])
def test_a_body_that_no_json_reader_can_take_is_the_clients_fault(api, ada, data) -> None:
    headers = {**ada, "Content-Type": "application/json"}
    answer = api.client.post("/v1/messages", content=data, headers=headers)
    assert answer.status_code in (400, 422)
    assert answer.json()["error"]["code"] == "INVALID_REQUEST"


def test_a_person_posts_as_themself(api, ada) -> None:
    answer = api.client.post("/v1/messages", json={"agent_id": "human-ada", "body": "x", "type": "agent"}, headers=ada)
    assert (answer.status_code, answer.json()["via"]) == (201, "dashboard")
    head = api.client.get(f"/v1/messages/{answer.json()['filename']}").json()["frontmatter"]
    assert (head["agent"], head["via"], head["type"]) == ("human-ada", "dashboard", "user")


def test_an_organizers_broadcast_reaches_everybody_else(api, ada, eve) -> None:
    chief = api.person("chief", is_organizer=True)
    sent = {"agent_id": "human-chief", "body": "Quiet please", "broadcast": True}
    answer = api.client.post("/v1/messages", json=sent, headers=chief).json()
    assert answer["broadcast"] is True
    assert api.read(f"broadcasts/{answer['filename']}") == api.read(answer["path"])
    assert api.client.get(f"/v1/messages/{answer['filename']}").json()["frontmatter"]["broadcast"] is True
    for handle, items in (
        ("red-kettle", [answer["filename"]]),
        ("human-ada", [answer["filename"]]),
        ("human-chief", []),
    ):
        assert api.client.get(f"/v1/inbox/{handle}").json()["items"] == items


def test_refs_reach_their_author_and_make_a_thread(api, ada, eve) -> None:
    root = api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "x"}, headers=ada).json()["filename"]
    sent = {"agent_id": "red-kettle", "body": "y", "refs": [root, "20200101-000000-000_blue-heron.md"]}
    answer = api.client.post("/v1/messages", json=sent, headers=eve).json()
    assert answer["mentions_delivered"] == ["blue-heron"]
    with reading(api.site.engine) as session:
        threads = session.exec(select(PostRow.thread)).all()
    assert set(threads) == {root}


def test_the_sixth_raw_post_of_a_minute_waits_and_a_refusal_costs_nothing(api, ada) -> None:
    def post():
        return api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "x"}, headers=ada)

    assert [post().status_code for _ in range(5)] == [201] * 5
    for _ in range(3):
        refused = post()
        assert code(refused) == (429, "RATE_LIMITED")
        assert refused.headers["retry-after"] == "60"
    api.site.clock.forward(seconds=60)
    assert post().status_code == 201


def test_thirty_raw_posts_fill_an_hour(api, ada) -> None:
    for _ in range(30):
        assert api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "x"}, headers=ada).is_success
        api.site.clock.forward(seconds=12)
    refused = api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "x"}, headers=ada)
    assert code(refused) == (429, "RATE_LIMITED")
    assert refused.headers["retry-after"] == str(3600 - 30 * 12)


def test_lists_have_the_shape_and_the_codes_of_the_contract(api, ada) -> None:
    for _ in range(3):
        api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "warmup"}, headers=ada)
    found = api.client.get("/v1/messages", params={"limit": 2, "q": "WARM"}).json()
    assert (found["count"], found["matched"], len(found["items"])) == (3, 3, 2)
    assert found["next"] == found["items"][-1]
    rest = api.client.get("/v1/messages", params={"before": found["next"], "expand": "true"}).json()
    assert [item["body"] for item in rest["items"]] == ["warmup"]
    assert rest["next"] is None
    assert code(api.client.get("/v1/messages?since=never")) == (400, "INVALID_QUERY")
    assert code(api.client.get("/v1/messages?limit=x")) == (400, "INVALID_QUERY")
    assert code(api.client.get("/v1/messages?agent=Blue")) == (400, "INVALID_PATH")
    assert api.client.get("/v1/messages?since=2026-11-29T13:00:00+01:00").json()["matched"] == 3
    assert api.client.get("/v1/messages?type=user").json()["matched"] == 0


def test_unknown_names_are_404_and_impossible_ones_400(api, ada) -> None:
    assert code(api.client.get("/v1/messages/20200101-000000-000_x.md")) == (404, "NOT_FOUND")
    assert code(api.client.get("/v1/messages/%2e%2e%2fx")) == (404, "NOT_FOUND")
    assert code(api.client.get("/v1/messages/..%00")) == (400, "INVALID_PATH")
    assert code(api.client.get("/v1/messages/.hidden")) == (400, "INVALID_PATH")
    assert code(api.client.get("/v1/inbox/nobody")) == (404, "NOT_REGISTERED")
    assert code(api.client.get("/v1/inbox/human-nobody")) == (404, "NOT_REGISTERED")
    assert code(api.client.get("/v1/inbox/Blue-Heron")) == (400, "INVALID_PATH")


def test_dashboards_read_raw_files(api, ada) -> None:
    sent = api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "x"}, headers=ada).json()
    dump = api.client.get("/api/messages").json()
    assert dump == {"items": [{"filename": sent["filename"], "content": api.read(sent["path"]).decode()}], "count": 1}


def test_every_write_is_audited_with_its_proof(api, ada) -> None:
    path = api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "x"}, headers=ada).json()["path"]
    with reading(api.site.engine) as session:
        row = session.exec(select(AuditRow)).one()
    assert (row.actor, row.action, row.target) == ("ada", "messages.post", path)
    assert row.proof.startswith("token:tok_")
    assert row.origin == "testclient"
