"""`/v1/jobs` as clients see it."""

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import select, update

import web.errors
from agents import tokens
from agents.rows import AgentRow, AuditRow, UserRow
from runner import queue
from storage.buckets import Put
from storage.database import reading, writing
from storage.local.rows import BucketRow
from storage.settings import Settings
from storage.site import Site
from tests.conftest import HeldClock
from web.api import jobs

MANIFEST = b'{"name": "m", "model_id": "a/b", "served_model_name": "t", "port": 8000, "serve": ["python", "serve.py"]}'
ORDER = {"agent_id": "blue-heron", "submission_prefix": "submissions/mine", "run_prefix": "runs/one"}


@pytest.fixture
def settings(tmp_path: Path, challenge_file: Path) -> Settings:
    return Settings(
        data=tmp_path / "data", challenge=challenge_file, server_env=Path(sys.prefix), trusted_submitters="ada"
    )


@pytest.fixture
def headers(site: Site) -> dict[str, dict[str, str]]:
    """The authorization of two users; `ada` has a registered agent with a submission."""
    found = {}
    with writing(site.engine) as session:
        for name in ("ada", "eve"):
            session.add(UserRow(name=name, created_at=site.clock()))
            session.flush()
            token = tokens.issue(session, name, secret=site.secret, now=site.clock())
            found[name] = {"Authorization": f"Bearer {token}"}
        for agent, user in (("blue-heron", "ada"), ("red-fox", "eve")):
            bucket = site.scratch(agent)
            site.buckets(session).create(bucket, owner=user)
            files = {".bucket-sync-handshake": user.encode(), "submissions/mine/manifest.json": MANIFEST}
            site.buckets(session).apply(bucket, [Put(path, data) for path, data in files.items()])
            row = AgentRow(
                agent_id=agent,
                hf_user=user,
                model="",
                harness="",
                tools=[],
                agent_bucket="",
                joined="",
                content_digest="",
            )
            session.add(row)
    return found


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    app = FastAPI()
    app.state.site = site
    web.errors.install(app)
    app.include_router(jobs.router)
    with TestClient(app, base_url="http://board.test") as opened:
        yield opened


Headers = dict[str, dict[str, str]]


def test_an_order_is_taken_with_the_contracts_answer(client: TestClient, headers: Headers) -> None:
    answer = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"])
    assert answer.status_code == 202
    body = answer.json()
    job = body.pop("job_id")
    folder = "hf://buckets/race/tiny-blue-heron/runs/one"
    assert body.pop("message")
    assert body == {
        "agent_id": "blue-heron",
        "hf_user": "ada",
        "submission_bucket": "race/tiny-blue-heron",
        "submission_prefix": "submissions/mine",
        "run_bucket": "race/tiny-blue-heron",
        "run_prefix": "runs/one",
        "job_url": f"http://board.test/v1/jobs/{job}",
        "status": "launched",
        "timeout_minutes": 3,
        "status_file": f"{folder}/job_status.json",
        "logs_file": f"{folder}/job_logs.txt",
        "quota": {"agent_remaining": 4, "user_remaining": 19},
    }
    shown = client.get(f"/v1/jobs/{job}").json()
    assert (shown["state"], shown["status"], shown["place"]) == ("queued", "running", 1)
    assert [item["job_id"] for item in client.get("/v1/jobs").json()["items"]] == [job]


def test_the_same_key_gives_the_same_job_and_costs_once(client: TestClient, headers: Headers) -> None:
    keyed = {**headers["ada"], "Idempotency-Key": "k1"}
    first, second = (client.post("/v1/jobs:run", json=ORDER, headers=keyed).json() for _ in range(2))
    assert first == second
    other = client.post("/v1/jobs:run", json={**ORDER, "run_prefix": "runs/two"}, headers=keyed)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "IDEMPOTENCY_MISMATCH")


def test_a_run_prefix_in_use_names_the_job(client: TestClient, headers: Headers) -> None:
    first = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"]).json()
    second = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"])
    assert second.status_code == 409
    assert second.json()["error"]["hint"] == first["job_id"]


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"agent_id": "Blue-Heron"}, 400, "INVALID_PATH"),
        ({"agent_id": "nobody"}, 404, "NOT_REGISTERED"),
        ({"agent_id": "red-fox"}, 403, "IDENTITY_MISMATCH"),
        ({"submission_prefix": "../other"}, 400, "INVALID_PATH"),
        ({"submission_prefix": "/submissions/mine"}, 400, "INVALID_PATH"),
        ({"submission_prefix": ""}, 400, "INVALID_PATH"),
        ({"submission_prefix": "submissions/none"}, 404, "SOURCE_NOT_FOUND"),
        ({"run_prefix": "runs/../../x"}, 400, "INVALID_PATH"),
        ({"run_prefix": "runs/.hidden"}, 400, "INVALID_PATH"),
        ({"run_prefix": "submissions/mine/run"}, 400, "INVALID_PATH"),
        ({"run_prefix": "submissions"}, 400, "INVALID_PATH"),
        ({"run_prefix": None}, 422, "INVALID_REQUEST"),
    ],
)
def test_a_bad_order_is_refused_by_name_and_costs_nothing(
    change: dict[str, object], status: int, code: str, client: TestClient, headers: Headers
) -> None:
    answer = client.post("/v1/jobs:run", json={**ORDER, **change}, headers=headers["ada"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert client.get("/v1/jobs").json()["count"] == 0
    good = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"])
    assert good.json()["quota"]["agent_remaining"] == 4


def test_without_a_token_or_a_handshake_nothing_runs(site: Site, client: TestClient, headers: Headers) -> None:
    assert client.post("/v1/jobs:run", json=ORDER).status_code == 401
    with writing(site.engine) as session:
        bucket = site.scratch("blue-heron")
        site.buckets(session).apply(bucket, [Put(".bucket-sync-handshake", b"eve")])
    answer = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "BUCKET_NOT_OWNED_BY_CALLER")


def test_a_bad_manifest_is_named_and_costs_nothing(site: Site, client: TestClient, headers: Headers) -> None:
    with writing(site.engine) as session:
        bad = Put("submissions/bad/manifest.json", MANIFEST.replace(b"8000", b"80"))
        site.buckets(session).apply(site.scratch("blue-heron"), [bad])
    answer = client.post("/v1/jobs:run", json={**ORDER, "submission_prefix": "submissions/bad"}, headers=headers["ada"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_MANIFEST")
    assert "port" in answer.json()["error"]["message"]
    assert client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"]).json()["quota"]["user_remaining"] == 19


def test_the_quota_is_a_sliding_day(client: TestClient, headers: Headers, clock: HeldClock) -> None:
    orders = [{**ORDER, "run_prefix": f"runs/{number}"} for number in range(7)]
    for order in orders[:5]:
        assert client.post("/v1/jobs:run", json=order, headers=headers["ada"]).status_code == 202
    refused = client.post("/v1/jobs:run", json=orders[5], headers=headers["ada"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RATE_LIMITED")
    assert int(refused.headers["Retry-After"]) == 86400
    clock.forward(hours=24)
    assert client.post("/v1/jobs:run", json=orders[5], headers=headers["ada"]).status_code == 202


def test_where_no_submission_can_run_the_refusal_says_what_is_missing(
    site: Site, client: TestClient, headers: Headers, tmp_path: Path
) -> None:
    object.__setattr__(site, "settings", site.settings.model_copy(update={"server_env": tmp_path / "absent"}))
    answer = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"])
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "JOBS_DISABLED")
    assert "environment" in answer.json()["error"]["message"]
    assert client.get("/v1/jobs").json()["count"] == 0


def test_only_its_owner_cancels_a_job(site: Site, client: TestClient, headers: Headers, clock: HeldClock) -> None:
    job = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"]).json()["job_id"]
    assert client.post(f"/v1/jobs/{job}:cancel", headers=headers["eve"]).status_code == 403
    assert client.post(f"/v1/jobs/{job}:cancel").status_code == 401
    assert client.post(f"/v1/jobs/{job}:cancel", headers=headers["ada"]).json()["state"] == "cancelled"
    assert client.post(f"/v1/jobs/{job}:cancel", headers=headers["ada"]).json()["state"] == "cancelled"
    clock.forward(seconds=1)
    running = client.post("/v1/jobs:run", json={**ORDER, "run_prefix": "runs/two"}, headers=headers["ada"]).json()
    with writing(site.engine) as session:
        queue.claim(session, worker="w", now=clock(), lease=timedelta(seconds=3))
    shown = client.post(f"/v1/jobs/{running['job_id']}:cancel", headers=headers["ada"]).json()
    assert (shown["state"], shown["cancel_requested"]) == ("preparing", True)
    with reading(site.engine) as session:
        written = [(row.actor, row.action, row.target) for row in session.exec(select(AuditRow))]
    assert written == [
        *[("ada", "jobs.run", job), *[("ada", "jobs.cancel", job)] * 2],
        *[("ada", "jobs.run", running["job_id"]), ("ada", "jobs.cancel", running["job_id"])],
    ]


def test_an_unknown_job_is_not_found(client: TestClient, headers: Headers) -> None:
    assert client.get("/v1/jobs/job_none").status_code == 404
    assert client.post("/v1/jobs/job_none:cancel", headers=headers["ada"]).status_code == 404


def test_what_a_private_submission_said_is_for_its_owner_alone(
    site: Site, client: TestClient, headers: Headers
) -> None:
    job = client.post("/v1/jobs:run", json=ORDER, headers=headers["ada"]).json()["job_id"]
    with writing(site.engine) as session:
        queue.get_job(session, job).message = "ValueError: my secret trick"

    def told(**call: object) -> set[str | None]:
        one = client.get(f"/v1/jobs/{job}", **call).json()  # type: ignore[arg-type]
        listed = client.get("/v1/jobs", **call).json()["items"][0]  # type: ignore[arg-type]
        assert (one["submission_prefix"] is None) == (one["message"] is None) == (listed["content_hash"] is None)
        return {one["message"], listed["message"]}

    assert told() == {"ValueError: my secret trick"}
    with writing(site.engine) as session:
        session.execute(update(BucketRow).values(private=True))
    assert told() == told(headers=headers["eve"]) == {None}
    assert told(headers=headers["ada"]) == {"ValueError: my secret trick"}
