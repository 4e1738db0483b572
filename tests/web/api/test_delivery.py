"""What an answer says about delivery, and that one bad stored file breaks no listing."""

import pytest

from board import reindex
from storage.buckets import Put
from storage.database import writing
from tests.web.api.asking import code

BAD = (b"\xff\xfe", b"---\na: &x [*x]\n---\n", b"---\nnever closed", b"---\ntps: .inf\n---\n", b"")
LISTINGS = (
    *("/v1/messages?expand=1&limit=0", "/v1/results?expand=1&limit=0", "/v1/agents", "/v1/leaderboard", "/v1/digest"),
    *("/v1/taskforces", "/v1/traces?expand=1", "/v1/stats", "/v1/inbox/blue-heron?expand=1", "/api/verification"),
    *("/api/messages", "/api/results", "/api/agents", "/v1/taskforces/tf", "/v1/taskforces/tf/notes?expand=1"),
)


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


def test_the_eleventh_recipient_is_left_out_and_named(api, ada) -> None:
    people = [f"human-p{number:02}" for number in range(12)]
    body = " ".join(f"@{name}" for name in [*people, "blue-heron", "nobody"])
    answer = api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": body}, headers=ada).json()
    assert (answer["mentions_delivered"], answer["mentions_dropped"]) == (people[:10], people[10:])
    inboxes = {path.split("/")[1] for path in api.files() if path.startswith("inbox/")}
    assert inboxes == set(people[:10])


def test_an_organizers_source_is_broadcast_when_the_request_asks_and_never_by_itself(api, ada) -> None:
    chief = api.person("chief", is_organizer=True)
    api.agent("chief-bot", chief)
    source = api.upload("chief-bot", "a.md", "Quiet, please.")
    loud = api.upload("chief-bot", "loud.md", "---\nbroadcast: true\n---\nLoud.")
    assert code(api.client.post("/v1/messages", json={"source": loud}, headers=chief)) == (403, "NOT_ORGANIZER")
    refused = api.client.post("/v1/messages", json={"source": loud, "broadcast": True}, headers=chief)
    assert code(refused) == (403, "NOT_ORGANIZER")
    sent = api.client.post("/v1/messages", json={"source": source, "broadcast": True}, headers=chief).json()
    assert sent["broadcast"] is True
    assert api.read(f"broadcasts/{sent['filename']}") == api.read(sent["path"])
    for handle in ("blue-heron", "human-ada", "human-chief"):
        assert api.client.get(f"/v1/inbox/{handle}").json()["items"] == [sent["filename"]]
    assert api.client.get("/v1/inbox/chief-bot").json()["items"] == []


def test_bad_stored_files_break_no_listing(api, ada) -> None:
    api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "good"}, headers=ada)
    api.client.post("/v1/taskforces", json={"name": "tf", "agent_id": "blue-heron", "body": "good"}, headers=ada)
    puts = []
    for number, data in enumerate(BAD):
        name = f"20260101-000000-00{number}_x.md"
        for path in (f"message_board/{name}", f"results/{name}", f"inbox/blue-heron/{name}", f"taskforces/tf/{name}"):
            puts.append(Put(path, data))
        puts += [Put(f"agents/bad{number}.md", data), Put(f"taskforces/bad{number}/README.md", data)]
        puts += [Put(f"traces/x/s{number}/manifest.md", data), Put(f"verdicts/{name[:-3]}/verdict.json", data)]
    puts += [Put("results/verification_status.json", b"\xff"), Put("agents/huge.md", b"x" * 2_000_000)]
    with writing(api.site.engine) as session:
        api.site.buckets(session).apply(api.site.central, puts)
        reindex.rebuild(api.site, session)
        assert reindex.check(api.site, session) == []
    for url in LISTINGS:
        assert api.client.get(url).status_code == 200, url
    assert "good" in [item["body"] for item in api.client.get("/v1/messages?expand=1").json()["items"]]
