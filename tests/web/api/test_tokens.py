"""One's own tokens over HTTP: made, listed, rotated, revoked; scopes hold at every kind of call."""

import pytest

from agents import accounts
from agents.roles import Role
from storage.database import writing
from tests.web.api.conftest import Api


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def ada(api: Api) -> dict[str, str]:
    return api.person("ada")


def make(api: Api, headers: dict[str, str], **wish: object) -> dict[str, str]:
    answer = api.client.post("/v1/me/tokens", json=wish, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    made: dict[str, str] = answer.json()
    return made


def test_a_token_is_shown_once_and_listed_without_its_text(api: Api, ada: dict[str, str]) -> None:
    made = make(api, ada, label="laptop", scopes=["read"], expires_at="2026-12-01T00:00:00+01:00")
    assert (made["scopes"], made["expires_at"]) == (["read"], "2026-11-30T23:00:00.000Z")
    listed = api.client.get("/v1/me/tokens", headers=ada)
    assert made["token"] not in listed.text
    assert listed.json()["count"] == 2
    assert {"id", "label", "scopes", "last_used_at"} <= set(listed.json()["items"][0])


def test_a_rotated_token_is_refused_from_then_on(api: Api, ada: dict[str, str]) -> None:
    old = make(api, ada, label="laptop")
    new = api.client.post(f"/v1/me/tokens/{old['id']}:rotate", headers=ada).json()
    assert api.client.get("/v1/me", headers=bearer(old["token"])).status_code == 401
    assert api.client.get("/v1/me", headers=bearer(new["token"])).json()["hf_user"] == "ada"
    assert new["label"] == "laptop"
    again = api.client.post(f"/v1/me/tokens/{old['id']}:rotate", headers=ada)
    assert (again.status_code, again.json()["error"]["code"]) == (404, "NOT_FOUND")


def test_a_token_revokes_itself(api: Api, ada: dict[str, str]) -> None:
    made = make(api, ada)
    assert api.client.delete(f"/v1/me/tokens/{made['id']}", headers=bearer(made["token"])).status_code == 204
    assert api.client.get("/v1/me", headers=bearer(made["token"])).status_code == 401


def test_anothers_token_is_not_there(api: Api, ada: dict[str, str]) -> None:
    theirs = make(api, api.person("eve"))
    for method, path in (("DELETE", ""), ("POST", ":rotate")):
        assert api.client.request(method, f"/v1/me/tokens/{theirs['id']}{path}", headers=ada).status_code == 404
    assert api.client.get("/v1/me", headers=bearer(theirs["token"])).status_code == 200


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ({"scopes": ["operate"]}, 403, "SCOPE_MISSING"),
        ({"scopes": ["fly"]}, 422, "INVALID_REQUEST"),
        ({"scopes": []}, 422, "INVALID_REQUEST"),
        ({"expires_at": "2026-11-29T11:00:00Z"}, 400, "INVALID_REQUEST"),
        ({"expires_at": "2026-12-01T00:00:00"}, 422, "INVALID_REQUEST"),
        ({"expires_at": "9999-12-31T23:59:59-23:00"}, 422, "INVALID_REQUEST"),
        ({"label": "x" * 101}, 422, "INVALID_REQUEST"),
        ({"user": "eve"}, 422, "INVALID_REQUEST"),
    ],
)
def test_what_no_token_can_be_is_refused(
    api: Api, ada: dict[str, str], wish: dict[str, object], status: int, code: str
) -> None:
    answer = api.client.post("/v1/me/tokens", json=wish, headers=ada)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_scope_opens_its_own_kind_of_call_alone(api: Api, ada: dict[str, str]) -> None:
    api.agent("blue-heron", ada)
    calls = {
        "read": ("GET", "/v1/me/tokens", None),
        "post": ("POST", "/v1/messages", {"agent_id": "blue-heron", "body": "x"}),
        "bucket": ("POST", "/api/buckets/race/tiny-other", None),
        "run": ("POST", "/v1/jobs/job_none:cancel", None),
        "operate": ("GET", "/v1/audit", None),
    }
    for scope in ("read", "post", "bucket", "run"):
        token = make(api, ada, scopes=[scope])["token"]
        for needed, (method, path, body) in calls.items():
            answer = api.client.request(method, path, json=body, headers=bearer(token))
            is_refused = answer.status_code == 403
            assert is_refused == (needed != scope), f"{scope} token, {method} {path}: {answer.status_code}"


def test_a_token_in_the_address_is_refused_unread(api: Api, ada: dict[str, str]) -> None:
    token = ada["Authorization"].removeprefix("Bearer ")
    for path in (
        f"/v1/messages?q={token}",
        f"/v1/agents/{token}",
        f"/?x=%70dk_{token[4:]}",
        f"/v1/messages?q=a+{token}",
    ):
        answer = api.client.get(path)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "TOKEN_IN_URL")
        assert token not in answer.text
    assert api.client.get("/v1/messages?q=pdk_something").status_code == 200


def test_the_last_use_is_noted_once_a_minute_with_where_it_came_from(api: Api, ada: dict[str, str], clock) -> None:
    def last() -> tuple[str, str]:
        item = api.client.get("/v1/me/tokens", headers=ada).json()["items"][0]
        return item["last_used_at"], item["last_origin"]

    last()
    assert last() == ("2026-11-29T12:00:00.000Z", "testclient")
    clock.forward(seconds=59)
    last()
    assert last()[0] == "2026-11-29T12:00:00.000Z"
    clock.forward(seconds=1)
    last()
    assert last()[0] == "2026-11-29T12:01:00.000Z"


def test_an_operator_lists_accounts_and_makes_links_and_nobody_else_does(api: Api, ada: dict[str, str]) -> None:
    for method, path in (("GET", "/v1/users"), ("POST", "/v1/users/ada/sign-in-links"), ("GET", "/v1/audit")):
        refused = api.client.request(method, path, headers=ada)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "NOT_OPERATOR")
    chief = api.person("chief", role=Role.OPERATOR)
    made = api.client.post("/v1/users/ada/sign-in-links", headers=chief)
    assert made.status_code == 201
    path = made.json()["url"].removeprefix("http://testserver")
    assert "Sign in as <bdi>ada</bdi>" in api.client.get(path, headers={"accept": "text/html"}).text
    assert api.client.post("/v1/users/nobody/sign-in-links", headers=chief).status_code == 404
    assert [item["user"] for item in api.client.get("/v1/users", headers=chief).json()["items"]] == ["ada", "chief"]


def test_the_audit_log_says_who_by_what_proof_from_where(api: Api, ada: dict[str, str]) -> None:
    posted = api.client.post("/v1/messages", json={"agent_id": "human-ada", "body": "Hello."}, headers=ada).json()
    token_id = api.client.get("/v1/me/tokens", headers=ada).json()["items"][0]["id"]
    chief = api.person("chief", role=Role.OPERATOR)
    found = api.client.get("/v1/audit?actor=ada&action=messages.post&since=20261129&limit=1", headers=chief).json()
    assert (found["matched"], found["next"]) == (1, None)
    line = found["items"][0]
    assert (line["actor"], line["proof"], line["origin"]) == ("ada", f"token:{token_id}", "testclient")
    assert line["target"] == posted["path"]
    for wrong in ("limit=x", "after=x", "before=-1", "since=never"):
        assert api.client.get(f"/v1/audit?{wrong}", headers=chief).json()["error"]["code"] == "INVALID_QUERY"


def test_a_closed_account_opens_nothing(api: Api, ada: dict[str, str]) -> None:
    with writing(api.site.engine) as session:
        accounts.set_role(session, "ada", Role.VISITOR)
    assert api.client.get("/v1/me", headers=ada).status_code == 401
