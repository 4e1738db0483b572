"""Buckets are made, shown, renamed and deleted by those who may."""

import pytest

from agents.rows import AgentRow
from storage.database import writing
from tests.web.hub.conftest import Hub


def test_whoami_names_the_caller_and_refuses_strangers(hub: Hub) -> None:
    body = hub.call("alice", "GET", "/api/whoami-v2").json()
    assert (body["name"], body["orgs"][0]["name"]) == ("alice", "race")
    assert body["auth"]["accessToken"]["role"] == "write"
    assert hub.call(None, "GET", "/api/whoami-v2").status_code == 401
    wrong = hub.http.get("/api/whoami-v2", headers={"Authorization": "Bearer pdk_wrong"})
    assert wrong.status_code == 401
    assert wrong.headers["X-Error-Message"]
    assert isinstance(wrong.json()["error"], str)


def test_a_new_bucket_answers_with_the_clients_own_address(hub: Hub) -> None:
    answer = hub.call("alice", "POST", "/api/buckets/race/tiny-a1", headers={"Host": "board.example:81"})
    assert answer.json()["url"] == "http://board.example:81/buckets/race/tiny-a1"
    again = hub.call("alice", "POST", "/api/buckets/race/tiny-a1", json={})
    assert again.status_code == 409
    assert again.json()["url"] == "http://testserver/buckets/race/tiny-a1"


def test_me_is_the_callers_own_namespace(hub: Hub) -> None:
    assert hub.call("alice", "POST", "/api/buckets/me/notes", json={}).json()["id"] == "alice/notes"
    assert [bucket["id"] for bucket in hub.call("alice", "GET", "/api/buckets/me").json()] == ["alice/notes"]


@pytest.mark.parametrize(
    "name",
    [
        "race/other-a1",
        "race/tiny-",
        "race/tiny-A1",
        "race/tiny-a1-",
        "race/tiny-human",
        "race/tiny-human-bob",
        "race/tiny-audit",
        "race/tiny-main-bucket",
        "race/tiny-runner",
        "race/tiny-" + "a" * 41,
        "bob/notes",
        "race-admin/tiny-x",
        "system/x",
    ],
)
def test_names_that_are_not_the_callers_are_refused_in_words(hub: Hub, name: str) -> None:
    answer = hub.call("alice", "POST", f"/api/buckets/{name}", json={})
    assert answer.status_code in (400, 403)
    assert len(answer.json()["error"]) > 20
    assert hub.call("alice", "GET", f"/api/buckets/{name}").status_code in (400, 404) or name == "race/tiny-main-bucket"


def test_the_bucket_of_another_users_agent_is_refused(hub: Hub) -> None:
    with writing(hub.site.engine) as session:
        session.add(
            AgentRow(
                agent_id="a1",
                hf_user="bob",
                model="m",
                harness="h",
                tools=[],
                agent_bucket="race/tiny-a1",
                joined="",
                content_digest="",
            )
        )
    assert hub.call("alice", "POST", "/api/buckets/race/tiny-a1", json={}).status_code == 403
    assert hub.call("bob", "POST", "/api/buckets/race/tiny-a1", json={}).status_code == 200


def test_info_counts_files_and_bytes(hub: Hub) -> None:
    hub.create("alice", "race/tiny-a1", visibility="private")
    hub.upload("alice", "race/tiny-a1", "a", [b"abc", b"de"])
    body = hub.call("alice", "GET", "/api/buckets/race/tiny-a1").json()
    assert (body["id"], body["private"], body["size"], body["totalFiles"]) == ("race/tiny-a1", True, 5, 1)
    assert body["createdAt"].endswith("Z")


def test_lists_show_what_the_caller_may_see(hub: Hub) -> None:
    hub.create("alice", "race/tiny-open")
    hub.create("alice", "race/tiny-hidden", private=True)

    def listed(user: str | None, search: str = "") -> list[str]:
        answer = hub.call(user, "GET", "/api/buckets/race", params={"search": search})
        return [bucket["id"].removeprefix("race/tiny-") for bucket in answer.json()]

    assert listed("alice") == ["hidden", "main-bucket", "open"]
    assert listed("bob") == listed(None) == ["main-bucket", "open"]
    assert listed("alice", "hid") == ["hidden"]


def test_only_the_owner_hides_renames_and_deletes(hub: Hub) -> None:
    hub.create("alice", "race/tiny-a1")
    move = {"fromRepo": "race/tiny-a1", "toRepo": "race/tiny-a2", "type": "bucket"}
    for user in ("bob", None):
        refused = 403 if user else 401
        assert hub.call(user, "DELETE", "/api/buckets/race/tiny-a1").status_code == refused
        assert hub.call(user, "POST", "/api/repos/move", json=move).status_code == refused
        settings = hub.call(user, "PUT", "/api/buckets/race/tiny-a1/settings", json={"private": True})
        assert settings.status_code == refused
    assert hub.call("alice", "PUT", "/api/buckets/race/tiny-a1/settings", json={"private": True}).status_code == 200
    assert hub.call("bob", "GET", "/api/buckets/race/tiny-a1").status_code == 404
    assert hub.call("alice", "POST", "/api/repos/move", json=move).status_code == 200
    assert hub.call("alice", "DELETE", "/api/buckets/race/tiny-a2").status_code == 204
    gone = hub.call("alice", "GET", "/api/buckets/race/tiny-a2")
    assert (gone.status_code, gone.headers["X-Error-Code"]) == (404, "RepoNotFound")


def test_a_bucket_does_not_move_where_it_could_not_be_made(hub: Hub) -> None:
    hub.create("alice", "race/tiny-a1")
    for to in ("race/tiny-audit", "bob/x", "race/tiny-main-bucket"):
        move = {"fromRepo": "race/tiny-a1", "toRepo": to, "type": "bucket"}
        assert hub.call("alice", "POST", "/api/repos/move", json=move).status_code == 403
    assert hub.call("alice", "GET", "/api/buckets/race/tiny-a1").status_code == 200


def test_a_malformed_body_is_refused_in_the_hubs_form(hub: Hub) -> None:
    answer = hub.call("alice", "POST", "/api/buckets/race/tiny-a1", json={"visibility": "secret"})
    assert answer.status_code == 422
    assert isinstance(answer.json()["error"], str)
    assert hub.call("alice", "POST", "/api/buckets/race/..", json={}).status_code in (400, 404, 405)


def test_a_json_body_is_not_read_without_end(hub: Hub) -> None:
    hub.create("alice", "race/tiny-a1")
    body = b'{"paths": ["' + b"a" * 5_000_000 + b'"]}'
    headers = {"Content-Type": "application/json"}
    answer = hub.call("alice", "POST", "/api/buckets/race/tiny-a1/paths-info", content=body, headers=headers)
    assert answer.status_code == 413


def test_no_registry_of_harnesses_is_kept(hub: Hub) -> None:
    assert hub.call(None, "GET", "/api/agent-harnesses").status_code == 404
