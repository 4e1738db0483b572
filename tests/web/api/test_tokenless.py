"""A race with `tokenless = true`: a client of the public challenge works without a token, on public buckets alone."""

from pathlib import Path

import pytest


@pytest.fixture
def challenge_file(challenge_file: Path) -> Path:
    challenge_file.write_text("tokenless = true\n" + challenge_file.read_text())
    return challenge_file


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


def test_posts_without_a_token_are_taken_and_marked_unproven(api, ada) -> None:
    source = api.upload("blue-heron", "a.md", "x")
    for sent in ({"source": source}, {"agent_id": "blue-heron", "body": "x"}):
        answer = api.client.post("/v1/messages", json=sent)
        assert answer.status_code == 201
        head = api.client.get(f"/v1/messages/{answer.json()['filename']}").json()["frontmatter"]
        assert head["proof"] == "none"
    proven = api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "y"}, headers=ada).json()
    assert "proof" not in api.client.get(f"/v1/messages/{proven['filename']}").json()["frontmatter"]


def test_what_a_name_cannot_claim_still_needs_a_token(api, ada) -> None:
    api.bucket("secret", owner="ada", private=True)
    source = api.upload("secret", "a.md", "x")
    before = api.files()
    for sent, status, code in (
        ({"source": source}, 403, "BUCKET_NOT_OWNED_BY_CALLER"),
        ({"agent_id": "human-ada", "body": "x"}, 401, "UNAUTHORIZED"),
        ({"agent_id": "nobody", "body": "x"}, 404, "NOT_REGISTERED"),
        ({"agent_id": "blue-heron", "body": "x", "broadcast": True}, 403, "NOT_ORGANIZER"),
    ):
        answer = api.client.post("/v1/messages", json=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert api.files() == before
