"""Buckets are made, shown, renamed and deleted by those who may."""

import pytest
from sqlmodel import select

from agents import tokens
from agents.rows import AgentRow, AuditRow
from agents.scopes import Scope
from storage.database import reading, writing
from tests.web.hub.conftest import Hub, delete


def bind_agent(hub: Hub, agent_id: str, user: str) -> None:
    with writing(hub.site.engine) as session:
        session.add(
            AgentRow(
                agent_id=agent_id,
                hf_user=user,
                model="m",
                harness="h",
                tools=[],
                agent_bucket=f"race/tiny-{agent_id}",
                joined="",
                content_digest="",
            )
        )


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
    assert hub.call("alice", "GET", f"/api/buckets/{name}").status_code in (400, 404)


def test_a_name_that_is_there_to_see_answers_409_and_what_is_hidden_is_refused_like_an_agents(hub: Hub) -> None:
    hub.create("alice", "race/tiny-open")
    hub.create("alice", "race/tiny-hidden", private=True)
    for name in ("race/tiny-open", "race/tiny-main-bucket"):
        answer = hub.call("bob", "POST", f"/api/buckets/{name}", json={})
        assert (answer.status_code, answer.json()["url"]) == (409, f"http://testserver/buckets/{name}")
        assert answer.headers["X-Error-Message"]
    bind_agent(hub, "taken", "alice")
    hidden, taken = (hub.call("bob", "POST", f"/api/buckets/race/tiny-{name}") for name in ("hidden", "taken"))
    assert hidden.status_code == taken.status_code == 403
    assert hidden.text == taken.text.replace("taken", "hidden")
    hub.create("bob", "race/tiny-bob")
    move = {"fromRepo": "race/tiny-bob", "toRepo": "race/tiny-hidden"}
    moved = hub.call("bob", "POST", "/api/repos/move", json=move)
    assert (moved.status_code, moved.text) == (403, hidden.text)


def test_a_person_has_a_number_of_buckets_and_no_more(hub: Hub) -> None:
    most = hub.site.challenge.limits.buckets_per_user
    for number in range(most):
        hub.create("alice", f"race/tiny-squat-{number}")
    refused = hub.call("alice", "POST", "/api/buckets/race/tiny-one-more", json={})
    assert (refused.status_code, refused.headers["X-Error-Code"]) == (403, "TOO_MANY_BUCKETS")
    assert str(most) in refused.json()["error"]
    hub.create("bob", "race/tiny-one-more")
    assert hub.call("alice", "DELETE", "/api/buckets/race/tiny-squat-0").status_code == 204
    hub.create("alice", "alice/notes")


def test_lists_come_in_pages(hub: Hub) -> None:
    for number in range(5):
        hub.create("alice", f"alice/n{number}")
    url, seen = "/api/buckets/me?limit=2&search=n", []
    while url:
        answer = hub.call("alice", "GET", url)
        seen += [bucket["id"] for bucket in answer.json()]
        url = answer.links.get("next", {}).get("url", "")
    assert seen == [f"alice/n{number}" for number in range(5)]
    assert hub.call(None, "GET", "/api/buckets/me").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PATCH", "/api/buckets/race/tiny-a1", "DELETE, GET, POST"),
        ("PUT", "/api/buckets/race/tiny-a1/tree/x", "GET"),
        ("POST", "/buckets/race/tiny-a1/resolve/x", "GET, HEAD"),
        ("GET", "/api/repos/move", "POST"),
    ],
)
def test_a_method_that_is_not_there_names_those_that_are(hub: Hub, method: str, path: str, allowed: str) -> None:
    answer = hub.call("alice", method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)


def test_a_token_that_is_not_for_buckets_reads_and_does_not_write(hub: Hub) -> None:
    hub.create("alice", "race/tiny-a1", private=True)
    with writing(hub.site.engine) as session:
        scopes, now = frozenset({Scope.READ, Scope.POST}), hub.site.clock()
        weak = tokens.issue(session, "alice", secret=hub.site.secret, now=now, scopes=scopes)
    headers = {"Authorization": f"Bearer {weak}"}
    assert hub.http.get("/api/buckets/race/tiny-a1", headers=headers).status_code == 200
    for method, path in (
        ("POST", "/api/buckets/race/tiny-a2"),
        ("POST", "/api/buckets/race/tiny-a1/batch"),
        ("GET", "/api/buckets/race/tiny-a1/xet-write-token"),
        ("DELETE", "/api/buckets/race/tiny-a1"),
    ):
        refused = hub.http.request(method, path, headers=headers)
        assert (refused.status_code, refused.headers["X-Error-Code"]) == (403, "SCOPE_MISSING")
        assert "bucket" in refused.json()["error"]


def test_every_write_leaves_a_line(hub: Hub) -> None:
    hub.create("alice", "race/tiny-a1")
    hub.batch("alice", "race/tiny-a1", delete("none"))
    hub.call("alice", "PUT", "/api/buckets/race/tiny-a1/settings", json={"private": True})
    hub.call("alice", "POST", "/api/repos/move", json={"fromRepo": "race/tiny-a1", "toRepo": "race/tiny-a2"})
    hub.call("alice", "DELETE", "/api/buckets/race/tiny-a2")
    with reading(hub.site.engine) as session:
        lines = [(row.action, row.target, row.actor) for row in session.exec(select(AuditRow).order_by(AuditRow.id))]
    assert lines == [
        ("buckets.create", "race/tiny-a1", "alice"),
        ("buckets.batch", "race/tiny-a1: 0 of 1 operations", "alice"),
        ("buckets.settings", "race/tiny-a1 private", "alice"),
        ("buckets.move", "race/tiny-a1 to race/tiny-a2", "alice"),
        ("buckets.delete", "race/tiny-a2", "alice"),
    ]


def test_the_bucket_of_another_users_agent_is_refused(hub: Hub) -> None:
    bind_agent(hub, "a1", "bob")
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
        assert hub.call("alice", "POST", "/api/repos/move", json=move).status_code in (403, 409)
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
