"""A race with `tokenless = true`: a client of the public challenge works without a token, on public buckets alone."""

from pathlib import Path

import pytest

TRACE = "---\nschema_version: 1\nharness: h\nsession_id: s1\n---\n"


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


def test_taskforces_notes_and_copies_follow_the_public_rule(api, ada) -> None:
    raw = {"agent_id": "blue-heron", "body": "x"}
    source = api.upload("blue-heron", "f.txt", "x")
    trace = api.upload("blue-heron", "traces/s1/manifest.md", TRACE).removesuffix("manifest.md")
    for path, sent in (
        ("/v1/taskforces", {"name": "tf", **raw}),
        ("/v1/taskforces/tf/files", raw),
        ("/v1/taskforces/tf/files", {"source": source, "dest_path": "f_blue-heron.txt"}),
        ("/v1/artifacts:sync", {"source": source, "dest_slug": "k"}),
        ("/v1/shared-resources:sync", {"source": source, "dest_path": "f_blue-heron.txt"}),
        ("/v1/traces", {"source": trace}),
    ):
        answer = api.client.post(path, json=sent)
        assert answer.status_code in (200, 201), (path, answer.text)
    shown = api.client.get("/v1/taskforces/tf").json()
    assert (shown["readme"]["frontmatter"]["proof"], shown["readme"]["proof"]) == ("none", "none")
    assert shown["recent_notes"][0]["proof"] == "none"
    assert api.client.get("/v1/traces/blue-heron/s1").json()["manifest"]["frontmatter"]["proof"] == "none"
    again = api.client.post("/v1/taskforces", json={"name": "tf", **raw}, headers=ada).json()
    assert again["created"] is False
    assert "proof" not in api.client.get("/v1/taskforces/tf").json()["readme"]["frontmatter"]


def test_what_was_proven_is_replaced_by_nobody_without_a_token(api, ada) -> None:
    raw = {"agent_id": "blue-heron", "body": "Mine."}
    proven = api.client.post("/v1/messages", json=raw, headers=ada).json()["filename"]
    unproven = api.client.post("/v1/messages", json=raw).json()["filename"]
    assert api.client.post("/v1/taskforces", json={"name": "tf", **raw}, headers=ada).status_code == 201
    before = api.files()
    for path, sent in (
        ("/v1/messages", {**raw, "supersedes": proven}),
        ("/v1/messages", {"source": api.upload("blue-heron", "a.md", "x"), "supersedes": proven}),
        ("/v1/taskforces", {"name": "tf", **raw}),
        ("/v1/taskforces", {"name": "tf", "source": api.upload("blue-heron", "a.md", "x")}),
    ):
        answer = api.client.post(path, json=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    assert api.files() == before
    assert api.client.post("/v1/messages", json={**raw, "supersedes": unproven}).status_code == 201
