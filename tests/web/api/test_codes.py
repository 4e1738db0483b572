"""Every code of the contract's section 3 is provoked here, has its status, and comes in the one shape."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from httpx import Response
from sqlmodel import select, text

from agents.roles import Role
from agents.rows import SpentRow
from agents.tokens import Caller
from board.rows import PostRow
from storage.database import reading, writing
from storage.settings import Settings
from tests.web.api.asking import code
from web.deps import maybe_bearer

STATUS = {
    "INVALID_PATH": 400,
    "INVALID_QUERY": 400,
    "INVALID_FRONTMATTER": 400,
    "UNAUTHORIZED": 401,
    "BUCKET_NOT_OWNED_BY_CALLER": 403,
    "IDENTITY_MISMATCH": 403,
    "NOT_ORGANIZER": 403,
    "NOT_REGISTERED": 404,
    "NOT_FOUND": 404,
    "SOURCE_NOT_FOUND": 404,
    "TASKFORCE_NOT_FOUND": 404,
    "AGENT_ID_TAKEN": 409,
    "ALREADY_PROMOTED": 409,
    "TASKFORCE_EXISTS": 409,
    "BUCKET_MISSING": 412,
    "SYNC_TOO_LARGE": 413,
    "INVALID_REQUEST": 422,
    "RATE_LIMITED": 429,
}
"""Those that a request alone provokes; the others, each below, take a server that can't do its work."""

MANIFEST = '{"name": "m", "model_id": "a/b", "served_model_name": "t", "port": 8000, "serve": ["python", "s.py"]}'
ORDER = {"agent_id": "blue-heron", "submission_prefix": "submissions/mine", "run_prefix": "runs/one"}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"server_env": Path(sys.prefix), "trusted_submitters": "ada"})


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


@contextmanager
def without_table(api, name: str) -> Iterator[None]:
    """Take a table away, as a damaged or half restored database has it."""
    with writing(api.site.engine) as session:
        session.execute(text(f"ALTER TABLE {name} RENAME TO gone"))
    yield
    with writing(api.site.engine) as session:
        session.execute(text(f"ALTER TABLE gone RENAME TO {name}"))


def test_each_code_that_a_request_provokes_has_its_status(api, ada) -> None:
    eve = api.person("eve")
    mine = api.upload("blue-heron", "a.md", "x")
    bad = api.upload("blue-heron", "bad.md", "---\na: 8:26\n---\nx")
    large = api.upload("blue-heron", "large.md", "x" * 300_000)
    again = {"agent_id": "blue-heron", "model": "m", "harness": "h"}
    raw = {"agent_id": "blue-heron", "body": "x"}
    assert api.client.post("/v1/messages", json={"source": mine}, headers=ada).status_code == 201
    assert api.client.post("/v1/taskforces", json={"name": "tf", **raw}, headers=ada).status_code == 201
    person = {"agent_id": "human-eve", "body": "x"}

    def post(path: str, sent: object, headers: dict[str, str] = ada) -> Callable[[], Response]:
        return lambda: api.client.post(path, json=sent, headers=headers)

    def get(path: str) -> Callable[[], Response]:
        return lambda: api.client.get(path)

    provoked = {
        "INVALID_PATH": post("/v1/messages", {"source": "/etc/passwd"}),
        "INVALID_QUERY": get("/v1/messages?since=never"),
        "INVALID_FRONTMATTER": post("/v1/messages", {"source": bad}),
        "UNAUTHORIZED": post("/v1/messages", raw, {}),
        "BUCKET_NOT_OWNED_BY_CALLER": post("/v1/messages", {"source": mine}, eve),
        "IDENTITY_MISMATCH": post("/v1/messages", raw, eve),
        "NOT_ORGANIZER": post("/v1/messages", {**raw, "broadcast": True}),
        "NOT_REGISTERED": get("/v1/agents/nobody"),
        "NOT_FOUND": get("/v1/messages/20200101-000000-000_x.md"),
        "SOURCE_NOT_FOUND": post("/v1/messages", {"source": mine.replace("a.md", "none.md")}),
        "TASKFORCE_NOT_FOUND": get("/v1/taskforces/none"),
        "AGENT_ID_TAKEN": post("/v1/agents/register", again),
        "ALREADY_PROMOTED": post("/v1/messages", {"source": mine}),
        "TASKFORCE_EXISTS": post("/v1/taskforces", {"name": "tf", **person}, eve),
        "BUCKET_MISSING": post("/v1/agents/register", {**again, "agent_id": "new-one"}),
        "SYNC_TOO_LARGE": post("/v1/messages", {"source": large}),
        "INVALID_REQUEST": post("/v1/messages", {**raw, "source": mine}),
    }
    for name, ask in provoked.items():
        answer = ask()
        assert code(answer) == (STATUS[name], name), answer.text
    hint = provoked["BUCKET_MISSING"]().json()["error"]["hint"]
    assert hint == "hf buckets create race/tiny-new-one"
    answers = [post("/v1/messages", raw)() for _ in range(6)]
    assert code(answers[-1]) == (429, "RATE_LIMITED")
    assert int(answers[-1].headers["retry-after"]) > 0
    assert provoked.keys() | {"RATE_LIMITED"} == STATUS.keys()


def test_where_limits_cannot_be_checked_nothing_is_done(api, ada) -> None:
    mine = api.upload("blue-heron", "a.md", "x")
    before = api.files()
    with without_table(api, "spent"):
        for path, sent in (
            ("/v1/messages", {"agent_id": "blue-heron", "body": "x"}),
            ("/v1/messages", {"source": mine}),
            ("/v1/artifacts:sync", {"source": mine, "dest_slug": "k"}),
            ("/v1/agents/register", {"agent_id": "blue-heron", "model": "m", "harness": "h", "force": True}),
        ):
            answer = api.client.post(path, json=sent, headers=ada)
            assert code(answer) == (503, "QUOTA_BACKEND_UNAVAILABLE"), path
    assert api.files() == before
    assert api.client.post("/v1/messages", json={"source": mine}, headers=ada).status_code == 201


def test_where_organizers_cannot_be_told_nobody_broadcasts(api, app, ada) -> None:
    chief = api.person("chief", is_organizer=True)
    sent = {"agent_id": "human-chief", "body": "Quiet", "broadcast": True}
    app.dependency_overrides[maybe_bearer] = lambda: Caller("chief", "tok_1", role=Role.ORGANIZER)
    with without_table(api, "users"):
        assert code(api.client.post("/v1/messages", json=sent)) == (503, "ORGANIZER_CHECK_UNAVAILABLE")
    app.dependency_overrides.clear()
    with reading(api.site.engine) as session:
        assert not session.exec(select(PostRow)).all()
    assert api.client.post("/v1/messages", json=sent, headers=chief).status_code == 201


def test_who_was_an_organizer_a_moment_ago_is_none(api, app) -> None:
    api.person("ada")
    app.dependency_overrides[maybe_bearer] = lambda: Caller("ada", "tok_1", role=Role.ORGANIZER)
    sent = {"agent_id": "human-ada", "body": "Quiet", "broadcast": True}
    assert code(api.client.post("/v1/messages", json=sent)) == (403, "NOT_ORGANIZER")


def test_a_run_that_our_store_cannot_start_costs_nothing(api, ada, caplog) -> None:
    api.upload("blue-heron", "submissions/mine/manifest.json", MANIFEST)
    shutil.rmtree(api.site.blobs.folder / "xorbs")
    with reading(api.site.engine) as session:
        before = len(session.exec(select(SpentRow)).all())
    answer = api.client.post("/v1/jobs:run", json=ORDER, headers=ada)
    assert code(answer) == (502, "JOB_LAUNCH_FAILED")
    assert "a run could not be queued" in caplog.text
    assert api.client.get("/v1/jobs").json()["count"] == 0
    with reading(api.site.engine) as session:
        assert len(session.exec(select(SpentRow)).all()) == before


def test_where_no_run_can_start_at_all_it_says_so(api, ada, tmp_path: Path) -> None:
    api.upload("blue-heron", "submissions/mine/manifest.json", MANIFEST)
    absent = api.site.settings.model_copy(update={"server_env": tmp_path / "absent"})
    object.__setattr__(api.site, "settings", absent)
    assert code(api.client.post("/v1/jobs:run", json=ORDER, headers=ada)) == (404, "JOBS_DISABLED")
