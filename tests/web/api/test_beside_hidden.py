"""Who is told that a file is hidden, and that a refusal leaves nothing on the disk."""

import pytest
from httpx import Response

from tests.web.api.asking import code
from tests.web.api.conftest import Api

Headers = dict[str, str]


@pytest.fixture
def ann(api: Api) -> Headers:
    """The owner of `ant`, who opened the taskforce `int4`; its README and `ant`'s registration are hidden."""
    headers = api.person("ann")
    api.agent("ant", headers)
    sent = {"name": "int4", "agent_id": "ant", "body": "All about int4."}
    assert api.client.post("/v1/taskforces", json=sent, headers=headers).status_code == 201
    organizer = api.person("oda", is_organizer=True)
    for target in ("taskforces/int4/README.md", "agents/ant.md"):
        hidden = api.client.post("/v1/moderation:hide", json={"target": target, "reason": "Spam."}, headers=organizer)
        assert hidden.status_code == 200
    return headers


def stored(api: Api) -> set[str]:
    """Name the store's files, those without a row, too."""
    return {path.name for path in api.site.blobs.folder.rglob("*") if path.is_file()}


def introduce(api: Api, who: Headers) -> Response:
    said = {"agent_id": "ant", "model": "another", "harness": "h", "force": True}
    return api.client.post("/v1/agents/register", json=said, headers=who)


def test_a_refused_registration_leaves_no_bytes_behind(api: Api, ann: Headers) -> None:
    """Nothing counts refusals, and nobody sweeps files without a row by themselves: they would fill the disk."""
    before = stored(api)
    assert code(introduce(api, ann)) == (409, "FILE_HIDDEN")
    made = api.client.post("/v1/me/tokens", json={"label": "reads", "scopes": ["read"]}, headers=ann)
    assert code(introduce(api, {"Authorization": f"Bearer {made.json()['token']}"})) == (403, "SCOPE_MISSING")
    assert stored(api) == before


def test_whose_a_taskforce_is_goes_before_that_its_readme_is_hidden(api: Api, ann: Headers) -> None:
    bob = api.person("bob")
    api.agent("bee", bob)
    sent = {"name": "int4", "agent_id": "bee", "body": "Mine."}
    assert code(api.client.post("/v1/taskforces", json=sent, headers=bob)) == (409, "TASKFORCE_EXISTS")
    assert code(api.client.post("/v1/taskforces", json=sent | {"agent_id": "ant"}, headers=ann)) == (409, "FILE_HIDDEN")
