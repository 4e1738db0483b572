"""Whatever taskforces, traces and syncs are sent, the answer has the shape of an error or nothing broke."""

import pytest

from tests.web.api.test_hostile_requests import STRANGE

GETS = (
    *("/v1/taskforces/{}", "/v1/taskforces/{}/notes", "/v1/taskforces/{}/files", "/v1/taskforces/tf/files/{}"),
    *("/v1/traces/{}/s1", "/v1/traces/blue-heron/{}", "/v1/taskforces?q={}", "/v1/taskforces?limit={}"),
    *(f"/v1/traces?{name}={{}}" for name in ("agent", "harness", "share", "q", "expand", "limit", "order", "after")),
    *("/v1/traces?before=2026-11-29T12:00:00Z|{}/{}", "/v1/digest?as={}", "/v1/digest?since={}"),
)
VALUES = ["a\0b", "💥", "../..", "x" * 5000, "\u2028", "[", "%s", "", None, 5, [], {"a": 1}, True, "\u202ea_blue-heron"]


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    api.client.post("/v1/taskforces", json={"name": "tf", "agent_id": "blue-heron", "body": "x"}, headers=headers)
    return headers


def test_strange_names_and_parameters_are_refused_or_find_nothing(api, ada) -> None:
    for url in (form.replace("{}", value) for form in GETS for value in STRANGE):
        answer = api.client.get(url)
        assert answer.status_code in (200, 307, 400, 404), url
        assert answer.status_code == 200 or answer.json()["error"]["code"], url


def test_strange_fields_are_refused_or_stored(api, ada) -> None:
    source = api.upload("blue-heron", "f.txt", "x")
    for path, good in (
        ("/v1/taskforces", {"name": "tf", "agent_id": "blue-heron", "body": "x"}),
        ("/v1/taskforces/tf/files", {"agent_id": "blue-heron", "body": "x", "type": "note"}),
        ("/v1/taskforces/tf/files", {"source": source, "dest_path": "f_blue-heron.txt"}),
        ("/v1/artifacts:sync", {"source": source, "dest_slug": "k"}),
        ("/v1/shared-resources:sync", {"source": source, "dest_path": "f_blue-heron.txt"}),
        ("/v1/traces", {"source": source, "share": "full"}),
    ):
        for field in good:
            for value in VALUES:
                answer = api.client.post(path, json={**good, field: value}, headers=ada)
                assert answer.status_code in (200, 201, 400, 403, 404, 413, 422), (path, field, value)
                api.site.clock.forward(minutes=3)
    for url in ("/v1/taskforces", "/v1/taskforces/tf", "/v1/taskforces/tf/files", "/v1/traces", "/v1/stats"):
        assert api.client.get(url).status_code == 200, url


def test_a_request_larger_than_any_record_is_not_read(api, ada) -> None:
    for url in ("/v1/taskforces", "/v1/taskforces/tf/files", "/v1/artifacts:sync", "/v1/traces"):
        sent = {**ada, "Content-Type": "application/json"}
        answer = api.client.post(url, content=b" " * 3_000_000, headers=sent)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "SYNC_TOO_LARGE"), url


def test_half_a_character_is_a_malformed_request(api, ada) -> None:
    headers = {**ada, "Content-Type": "application/json"}
    for url, body in (
        ("/v1/taskforces", b'{"name": "a", "agent_id": "blue-heron", "body": "\\ud800"}'),
        ("/v1/taskforces/tf/files", b'{"source": "x", "dest_path": "\\ud800"}'),
        ("/v1/artifacts:sync", b'{"source": "\\ud800", "dest_slug": "k"}'),
        ("/v1/shared-resources:sync", b'{"source": "x", "dest_path": "\\ud800"}'),
        ("/v1/traces", b'{"source": "\\ud800"}'),
    ):
        answer = api.client.post(url, content=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "INVALID_REQUEST"), url
