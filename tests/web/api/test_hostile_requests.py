"""Whatever a request says, it is answered in the one shape of an error, never with a bare 500."""

import errno
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote

import pytest
from sqlalchemy import event
from sqlalchemy.exc import DataError

from storage.local.blobs import Blobs

STRANGE = [
    "%00",
    "%ff",
    "%C3%28",
    "..",
    "%2e%2e",
    "..%2f..",
    "a%0Ab",
    quote("💥" * 50),
    "x" * 3000,
    "%25",
    "'--",
    "[",
    "{}",
]
GETS = ["/v1/messages/{}", "/v1/agents/{}", "/v1/inbox/{}"]
PARAMS = ["since", "until", "agent", "type", "via", "q", "expand", "limit", "order", "after", "before"]


@pytest.mark.parametrize("value", STRANGE)
def test_strange_names_and_parameters_are_refused_or_find_nothing(api, value: str) -> None:
    urls = [path.format(value) for path in GETS]
    urls += [f"/v1/messages?{name}={value}" for name in PARAMS]
    urls += [f"/v1/agents?{name}={value}" for name in ("q", "hf_user", "model", "harness", "limit", "order")]
    for url in urls:
        answer = api.client.get(url)
        assert answer.status_code in (200, 307, 400, 404), url
        assert answer.status_code == 200 or answer.json()["error"]["code"], url


@pytest.mark.parametrize(
    "value", ["a\0b", "💥", "../..", "x" * 5000, "\u2028", "[", "%s", "", None, 5, [], {"a": 1}, True]
)
def test_strange_fields_are_refused_or_stored(api, value) -> None:
    ada = api.person("ada")
    api.agent("blue-heron", ada)
    good = {"agent_id": "blue-heron", "body": "x", "type": "note", "refs": "x.md", "broadcast": False}
    for field in good:
        answer = api.client.post("/v1/messages", json={**good, field: value}, headers=ada)
        assert answer.status_code in (201, 400, 403, 404, 422, 429), field
        api.site.clock.forward(minutes=5)
    answer = api.client.post("/v1/messages", json={"source": value}, headers=ada)
    assert answer.status_code in (400, 422)
    assert api.client.get("/v1/messages?expand=1").status_code == 200


def test_posts_at_the_same_moment_get_names_of_their_own(api) -> None:
    ada = api.person("ada")
    agents = [f"a{n}" for n in range(6)]
    for agent in agents:
        api.agent(agent, ada)
        api.site.clock.forward(minutes=1)

    def post(agent: str) -> str:
        return api.client.post("/v1/messages", json={"agent_id": agent, "body": "x"}, headers=ada).json()["filename"]

    with ThreadPoolExecutor(6) as pool:
        names = list(pool.map(post, agents * 3))
    stamps = {name.partition("_")[0] for name in names}
    assert len(stamps) == 18
    assert api.client.get("/v1/messages").json()["count"] == 18


def test_a_request_larger_than_any_record_is_not_read(api) -> None:
    ada = api.person("ada")
    for url in ("/v1/messages", "/v1/agents/register"):
        answer = api.client.post(url, content=b" " * 3_000_000, headers={**ada, "Content-Type": "application/json"})
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "SYNC_TOO_LARGE"
        pieces = (b" " * 100_000 for _ in range(30))  # sent without saying how long it is
        answer = api.client.post(url, content=pieces, headers={**ada, "Content-Type": "application/json"})
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "SYNC_TOO_LARGE"


def test_half_a_character_is_a_malformed_request(api) -> None:
    ada = api.person("ada") | {"Content-Type": "application/json"}
    for url, body in (
        ("/v1/agents/register", b'{"agent_id": "\\ud800", "model": "m", "harness": "h"}'),
        ("/v1/messages", b'{"agent_id": "a", "body": "\\udfff"}'),
        ("/v1/results", b'{"source": "hf://buckets/race/tiny-a/\\ud800"}'),
    ):
        answer = api.client.post(url, content=body, headers=ada)
        assert answer.status_code == 422, url
        assert answer.json()["error"]["code"] == "INVALID_REQUEST"
        assert answer.json()["detail"]


def test_head_is_get_without_its_body(api) -> None:
    for url in ("/", "/leaderboard", "/v1", "/v1/messages", "/v1/messages/nope.md", "/docs", "/static/style.css"):
        whole, head = api.client.get(url), api.client.head(url)
        assert (head.status_code, head.content) == (whole.status_code, b""), url
        assert head.headers["content-type"] == whole.headers["content-type"]


def test_what_nobody_foresaw_keeps_the_shape_of_an_error(api, app) -> None:
    @app.get("/v1/broken")
    def broken() -> None:
        raise RuntimeError("a secret of ours")

    answer = api.client.get("/v1/broken")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "INTERNAL"
    assert "secret" not in answer.text


def test_a_full_disk_is_told_and_nothing_is_kept_on_dev_full_in_place_of_the_store(
    api, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = api.person("ada")
    api.agent("red-fox", ada)
    before = api.files()

    @contextmanager
    def full(_blobs: Blobs) -> Iterator[BinaryIO]:
        with Path("/dev/full").open("r+b", buffering=0) as file:
            yield file

    monkeypatch.setattr(Blobs, "incoming", full)
    answer = api.client.post("/v1/messages", json={"agent_id": "red-fox", "body": "hello"}, headers=ada)
    assert_full(answer)
    assert api.files() == before


def test_a_database_without_room_for_a_page_more_is_a_full_disk(api) -> None:
    ada = api.person("ada")
    api.agent("red-fox", ada)
    before = api.files()

    def no_page_more(connection: Any, *_: Any) -> None:
        pages = connection.execute("pragma page_count").fetchone()[0]
        connection.execute(f"pragma max_page_count = {pages}")

    event.listen(api.site.engine, "checkout", no_page_more)
    body = "word " * 5000
    answer = api.client.post("/v1/messages", json={"agent_id": "red-fox", "body": body}, headers=ada)
    event.remove(api.site.engine, "checkout", no_page_more)
    assert_full(answer)
    assert api.files() == before


def test_a_browser_gets_a_full_disk_as_a_page(api, app) -> None:
    @app.get("/full")
    def full() -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded", "/secret/of/ours")

    answer = api.client.get("/full", headers={"accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (507, "text/html; charset=utf-8")
    assert "No room left" in answer.text
    assert "secret" not in answer.text


def test_another_fault_of_the_system_is_ours_and_a_secret(api, app) -> None:
    @app.get("/v1/denied")
    def denied() -> None:
        raise PermissionError(errno.EACCES, "denied", "/secret/of/ours")

    answer = api.client.get("/v1/denied")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL")
    assert "secret" not in answer.text


def assert_full(answer: Any) -> None:
    assert answer.status_code == 507
    assert answer.json()["error"] == {
        "code": "STORAGE_FULL",
        "message": "The server's disk is full; nothing of what you sent was kept.",
        "hint": "Tell the organizers, and send it again once there is room.",
    }


def test_text_that_the_database_has_no_form_for_is_a_malformed_request(api, app) -> None:
    @app.get("/v1/unstorable")
    def unstorable() -> None:
        raise DataError("select", {}, ValueError("NUL"))

    answer = api.client.get("/v1/unstorable")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "INVALID_REQUEST")


def test_a_browser_that_sends_a_wrong_field_sees_a_page(api) -> None:
    answer = api.client.get("/", params={"seen": "x" * 300}, headers={"Accept": "text/html"})
    assert answer.status_code == 422
    assert answer.headers["content-type"].startswith("text/html")
    assert "content-security-policy" in answer.headers
