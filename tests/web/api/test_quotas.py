"""Agents see their budgets, operators see and change everyone's, and each change says who, when and why."""

from typing import Any

import pytest
from sqlmodel import select

from agents import accounts, tokens
from agents.roles import Role
from agents.rows import AuditRow
from agents.scopes import ALL
from storage.database import reading, writing
from tests.conftest import HeldClock
from tests.web.api.conftest import Api


@pytest.fixture
def ada(api: Api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


@pytest.fixture
def boss(api: Api) -> dict[str, str]:
    site = api.site
    with writing(site.engine) as session:
        accounts.add(session, "boss", role=Role.OPERATOR, now=site.clock())
        token = tokens.issue(session, "boss", secret=site.secret, now=site.clock(), scopes=ALL)
    return {"Authorization": f"Bearer {token}"}


def budget(api: Api, headers: dict[str, str], name: str, handle: str = "blue-heron") -> dict[str, Any]:
    answer = api.client.get(f"/v1/quotas/{handle}", headers=headers)
    assert answer.status_code == 200, answer.text
    return next(each for each in answer.json()["budgets"] if each["budget"] == name)


def post(api: Api, headers: dict[str, str]) -> Any:
    return api.client.post("/v1/messages", json={"agent_id": "blue-heron", "body": "x"}, headers=headers)


def test_every_budget_is_shown_to_its_owner(api: Api, ada: dict[str, str]) -> None:
    api.upload("blue-heron", "a.txt", "a" * 1000)
    assert post(api, ada).status_code == 201
    told = api.client.get("/v1/quotas/blue-heron", headers=ada).json()
    assert [each["budget"] for each in told["budgets"]] == [
        "raw_posts_per_min",
        "raw_posts_per_hour",
        "promotions_burst",
        "promotions_per_min",
        "runs_per_agent_per_day",
        "registrations_per_min",
        "runs_per_user_per_day",
        "verifications_per_user_per_day",
        "bucket_bytes",
        "bucket_stored_bytes",
        "bucket_files",
    ]
    assert budget(api, ada, "raw_posts_per_min") == {
        "budget": "raw_posts_per_min",
        "subject": "agent:blue-heron",
        "used": 1,
        "limit": 5,
        "default": 5,
        "remaining": 4,
        "window_s": 60,
        "resets_at": "2026-11-29T12:01:00.000Z",
    }
    assert budget(api, ada, "bucket_bytes")["used"] == 1004  # and the handshake
    assert told["buckets"] == [{"id": "race/tiny-blue-heron", "bytes": 1004, "stored_bytes": 1004, "files": 2}]
    mine = api.client.get("/v1/me/quotas", headers=ada).json()
    assert [item["handle"] for item in mine["items"]] == ["human-ada", "blue-heron"]
    assert mine["items"][1] == told


def test_others_see_nothing_and_change_nothing(api: Api, ada: dict[str, str]) -> None:
    eve = api.person("eve")
    assert api.client.get("/v1/quotas/blue-heron", headers=eve).json()["error"]["code"] == "QUOTA_NOT_YOURS"
    assert api.client.get("/v1/quotas/blue-heron").status_code == 401
    for headers in (eve, ada):
        path = "/v1/quotas/blue-heron/raw_posts_per_min"
        assert api.client.put(path, json={"limit": 99, "reason": "x"}, headers=headers).status_code == 403
        assert api.client.post(f"{path}:reset", json={"reason": "x"}, headers=headers).status_code == 403
    assert budget(api, ada, "raw_posts_per_min")["limit"] == 5


def test_a_limit_that_an_operator_sets_holds_at_once(api: Api, ada: dict[str, str], boss: dict[str, str]) -> None:
    path = "/v1/quotas/blue-heron/raw_posts_per_min"
    answer = api.client.put(path, json={"limit": 1, "reason": "It  floods\nthe board."}, headers=boss)
    assert answer.status_code == 200, answer.text
    assert answer.json()["change"] == {
        "at": "2026-11-29T12:00:00.000Z",
        "subject": "agent:blue-heron",
        "budget": "raw_posts_per_min",
        "action": "set",
        "by": "boss",
        "reason": "It floods the board.",
        "before": 5,
        "after": 1,
    }
    assert [post(api, ada).status_code for _ in range(2)] == [201, 429]
    api.client.put(path, json={"limit": None, "reason": "Free."}, headers=boss)
    assert [post(api, ada).status_code for _ in range(9)] == [201] * 9
    api.client.put(path, json={"limit": "default", "reason": "As before."}, headers=boss)
    assert post(api, ada).status_code == 429
    trail = api.client.get("/v1/quotas/blue-heron", headers=ada).json()["changes"]
    assert [(row["before"], row["after"]) for row in trail] == [(None, 5), (1, None), (5, 1)]
    with reading(api.site.engine) as session:
        lines = session.exec(select(AuditRow).where(AuditRow.action == "quotas.set")).all()
    assert [line.actor for line in lines] == ["boss"] * 3
    assert lines[0].target == "agent:blue-heron raw_posts_per_min: 5 to 1, because: It floods the board."


def test_a_reset_clears_the_uses_and_leaves_a_trace(api: Api, ada: dict[str, str], boss: dict[str, str]) -> None:
    assert [post(api, ada).status_code for _ in range(6)] == [201] * 5 + [429]
    path = "/v1/quotas/blue-heron/raw_posts_per_min:reset"
    answer = api.client.post(path, json={"reason": "The board was down."}, headers=boss)
    change = answer.json()["change"]
    assert (change["action"], change["before"], change["after"]) == ("reset", 5, 0)
    assert post(api, ada).status_code == 201
    assert budget(api, ada, "raw_posts_per_hour")["used"] == 6


def test_a_reset_of_bytes_gives_the_races_own_limit_again(api: Api, ada: dict[str, str], boss: dict[str, str]) -> None:
    path = "/v1/quotas/blue-heron/bucket_bytes"
    api.client.put(path, json={"limit": 7, "reason": "Too much."}, headers=boss)
    assert budget(api, ada, "bucket_bytes", "human-ada")["remaining"] == 3  # a limit of the person, for all agents
    answer = api.client.post(f"{path}:reset", json={"reason": "Settled."}, headers=boss)
    assert (answer.json()["change"]["before"], answer.json()["change"]["after"]) == (7, None)
    assert budget(api, ada, "bucket_bytes")["limit"] is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"limit": 1}, 422),
        ({"limit": 1, "reason": ""}, 422),
        ({"limit": 1, "reason": " \n"}, 400),
        ({"limit": 1, "reason": "x" * 501}, 422),
        ({"limit": -1, "reason": "x"}, 422),
        ({"limit": 2**63, "reason": "x"}, 422),
        ({"limit": 1.5, "reason": "x"}, 422),
        ({"limit": "none", "reason": "x"}, 422),
        ({"limit": 1, "reason": "x", "more": 1}, 422),
    ],
)
def test_a_change_without_a_reason_or_a_figure_is_refused(
    api: Api, ada: dict[str, str], boss: dict[str, str], body: dict[str, Any], status: int
) -> None:
    answer = api.client.put("/v1/quotas/blue-heron/raw_posts_per_min", json=body, headers=boss)
    assert answer.status_code == status, answer.text
    assert budget(api, ada, "raw_posts_per_min")["limit"] == 5
    assert api.client.get("/v1/quotas/blue-heron", headers=ada).json()["changes"] == []


def test_what_is_not_there_can_not_be_changed(api: Api, ada: dict[str, str], boss: dict[str, str]) -> None:
    for path, code in (
        ("nobody/raw_posts_per_min", "NOT_REGISTERED"),
        ("blue-heron/sleep", "BUDGET_NOT_FOUND"),
        ("human-ada/runs_per_agent_per_day", "BUDGET_NOT_FOUND"),
    ):
        answer = api.client.put(f"/v1/quotas/{path}", json={"limit": 1, "reason": "x"}, headers=boss)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, code)


def test_operators_page_through_everybody(api: Api, ada: dict[str, str], boss: dict[str, str]) -> None:
    api.agent("red-fox", api.person("eve"))
    first = api.client.get("/v1/quotas", params={"limit": 1}, headers=boss).json()
    assert (first["count"], first["items"][0]["handle"], first["next"]) == (2, "blue-heron", "blue-heron")
    rest = api.client.get("/v1/quotas", params={"after": first["next"]}, headers=boss).json()
    assert ([item["handle"] for item in rest["items"]], rest["next"]) == (["red-fox"], None)


def test_what_is_left_stands_in_headers(api: Api, ada: dict[str, str], clock: HeldClock) -> None:
    seen = []
    for _ in range(6):
        answer = post(api, ada)
        seen.append([answer.headers[f"x-ratelimit-{name}"] for name in ("limit", "remaining", "reset")])
        clock.forward(seconds=2)
    assert seen == [["5", str(left), str(60 - 2 * at)] for at, left in enumerate((4, 3, 2, 1, 0, 0))]
    assert answer.headers["retry-after"] == "50"
    source = api.upload("blue-heron", "m.md", "Hello.")
    answer = api.client.post("/v1/messages", json={"source": source}, headers=ada)
    assert (answer.status_code, answer.headers["x-ratelimit-remaining"]) == (201, "19")
    answer = api.client.post("/v1/messages", json={"source": source}, headers=ada)
    assert (answer.status_code, "x-ratelimit-limit" in answer.headers) == (409, False)


def test_what_a_second_earlier_fails_succeeds_at_retry_after(api: Api, ada: dict[str, str], clock: HeldClock) -> None:
    while (answer := post(api, ada)).status_code == 201:
        clock.forward(seconds=7.3)
    wait_s = int(answer.headers["retry-after"])
    clock.forward(seconds=wait_s - 1)
    assert post(api, ada).status_code == 429
    clock.forward(seconds=1)
    assert post(api, ada).status_code == 201
