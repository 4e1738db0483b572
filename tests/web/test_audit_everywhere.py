"""Every call that writes leaves one line in the audit log: who, by what proof, from where, what.

Every route that isn't read only stands in a table below, and one without a line fails the test: either in WRITES,
where it is called with success and its line is looked for, or in KEEPS_NOTHING with its reason.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import Response
from sqlmodel import col, select

from agents.rows import AuditRow
from agents.scopes import Scope
from storage.database import reading
from storage.settings import Settings
from storage.site import Site
from storage.xet.hashes import to_text
from storage.xet.shards import serialise
from tests.storage.xet.builders import claim, noise, xorb
from tests.web import cast as casting
from tests.web.cast import Cast, cookies_of, unchanging
from tests.web.test_permission_matrix import PROGRAMS, TARGET, ask, named, path_of, routes, words_of
from web.app import create_app

PIECES = [noise(70_000, 1)]

KEEPS_NOTHING = {
    "POST /api/buckets/{namespace}/{name}/paths-info": "asks for paths, too many for an address",
    "POST /cas/{generation}/{bucket_id}/v1/xorb-grants/{prefix}/{digest}": "tells what needn't be sent",
    "POST /cas/{generation}/{bucket_id}/v1/telemetry": "is thrown away",
    "POST /theme": "sets a cookie",
    "POST /post/preview": "shows a text as it would look",
    "POST /mcp": "its tools call the routes above, as the same caller",
    "ANY /static": "reads",
}


@dataclass
class Call:
    """How a route is called with success, and what its line says was done."""

    action: str
    actor: str = "owner"
    form: dict[str, str] = field(default_factory=dict)
    send: Callable[[Cast], Response] | None = None
    before: Callable[[Cast], Response] | None = None


def asks(route: str, actor: str, form: dict[str, str] | None = None) -> Callable[[Cast], Response]:
    return lambda cast: send(cast, route, Call("", actor, form or {}))


def send(cast: Cast, route: str, call: Call) -> Response:
    """Make a call: the matrix's own request to the API, a form to a page."""
    if call.send is not None:
        return call.send(cast)
    method, template = route.split(" ", 1)
    if template.startswith(PROGRAMS):
        return ask(cast, route, call.actor, Scope.OPERATE if call.actor == "operator" else None)
    key = cast.key(call.actor, None)
    fields = {
        "csrf": cast.form_word(key.cookie),
        **named(cast, call.form),
    }
    headers = {"Origin": "http://testserver", "Accept": "text/html", **cookies_of(key)}
    return cast.client.request(method, path_of(cast, route), data=fields, headers=headers)


def to_store(path: str, body: bytes) -> Callable[[Cast], Response]:
    """A call of the store with the access of the private bucket's owner."""

    def post(cast: Cast) -> Response:
        headers = {"Authorization": f"Bearer {cast.store_token(cast.key('owner', None))}"}
        base = "/cas/{generation}/{bucket_id}".format(**words_of(cast, "/cas/"))
        return cast.client.post(base + path, content=body, headers=headers)

    return post


RAW, TABLE, NAME = xorb(PIECES)
XORB = to_store(f"/v1/xorbs/default/{to_text(NAME)}", RAW)
SHARD = serialise([claim(TABLE)])


def with_token(cast: Cast) -> Response:
    fields = {"token": cast.key("owner", None).token}
    return cast.client.post("/signin", data=fields, headers={"Origin": "http://testserver"})


WHY = {"reason": "Because."}
WRITES = {
    "POST /v1/agents/register": Call("agents.register"),
    "POST /v1/messages": Call("messages.post"),
    "PUT /v1/inbox/{handle}/cursor": Call("inbox.read"),
    "POST /v1/results": Call("results.post"),
    "POST /v1/jobs:run": Call("jobs.run"),
    "POST /v1/jobs/{job_id}:cancel": Call("jobs.cancel"),
    "POST /v1/me/tokens": Call("tokens.make"),
    "POST /v1/me/tokens/{token_id}:rotate": Call("tokens.rotate"),
    "DELETE /v1/me/tokens/{token_id}": Call("tokens.revoke"),
    "POST /v1/users/{user}/sign-in-links": Call("links.make", "operator"),
    "POST /v1/taskforces": Call("taskforces.update"),
    "POST /v1/taskforces/{name}/files": Call("taskforces.note"),
    "POST /v1/traces": Call("traces.post"),
    "POST /v1/artifacts:sync": Call("artifacts.sync"),
    "POST /v1/shared-resources:sync": Call("shared.sync"),
    "POST /v1/messages/{filename}:retract": Call("moderation.retract"),
    "POST /v1/results/{filename}:retract": Call("moderation.retract"),
    "POST /v1/moderation:retract": Call("moderation.retract"),
    "POST /v1/moderation:hide": Call("moderation.hide", "organizer"),
    "POST /v1/moderation:unhide": Call(
        "moderation.unhide", "organizer", before=asks("POST /v1/moderation:hide", "organizer")
    ),
    "POST /v1/messages/{filename}:hide": Call("moderation.hide", "organizer"),
    "POST /v1/results/{filename}:hide": Call("moderation.hide", "organizer"),
    "POST /v1/messages/{filename}:unhide": Call(
        "moderation.unhide", "organizer", before=asks("POST /v1/messages/{filename}:hide", "organizer")
    ),
    "POST /v1/results/{filename}:unhide": Call(
        "moderation.unhide", "organizer", before=asks("POST /v1/results/{filename}:hide", "organizer")
    ),
    "PUT /v1/quotas/{handle}/{budget}": Call("quotas.set", "operator"),
    "POST /v1/quotas/{handle}/{budget}:reset": Call("quotas.reset", "operator"),
    "POST /api/buckets/{namespace}/{name}": Call("buckets.create"),
    "DELETE /api/buckets/{namespace}/{name}": Call("buckets.delete"),
    "PUT /api/buckets/{namespace}/{name}/settings": Call("buckets.settings"),
    "POST /api/repos/move": Call("buckets.move"),
    "POST /api/buckets/{namespace}/{name}/batch": Call("buckets.batch"),
    "POST /cas/{generation}/{bucket_id}/v1/xorbs/{prefix}/{digest}": Call("store.xorb", send=XORB),
    "POST /cas/{generation}/{bucket_id}/v2/shards": Call(
        "store.shard", send=to_store("/v2/shards", SHARD), before=XORB
    ),
    "POST /cas/{generation}/{bucket_id}/v1/shards": Call(
        "store.shard", send=to_store("/v1/shards", SHARD), before=XORB
    ),
    "POST /cas/{generation}/{bucket_id}/shards": Call("store.shard", send=to_store("/shards", SHARD), before=XORB),
    "POST /signin": Call("sessions.start", send=with_token),
    "POST /signin/link/{secret}": Call("sessions.start", "visitor"),
    "POST /signout": Call("sessions.end"),
    "POST /signout/everywhere": Call("sessions.end_all"),
    "POST /account/tokens": Call("tokens.make"),
    "POST /account/tokens/{token_id}/rotate": Call("tokens.rotate"),
    "POST /account/tokens/{token_id}/revoke": Call("tokens.revoke"),
    "POST /account/sessions/{session_id}/end": Call("sessions.end"),
    "POST /quotas/{handle}": Call(
        "quotas.reset", "operator", {"budget": "raw_posts_per_min", "action": "reset", **WHY}
    ),
    "POST /post": Call("messages.post", form={"body": "Hello.", "step": "post"}),
    "POST /moderation/retract": Call("moderation.retract", form=TARGET),
    "POST /moderation/hide": Call("moderation.hide", "organizer", TARGET),
    "POST /moderation/unhide": Call(
        "moderation.unhide", "organizer", TARGET, before=asks("POST /moderation/hide", "organizer", TARGET)
    ),
    "POST /inbox/{handle}": Call("inbox.read", form={"read_to": "{message}"}),
    "POST /jobs/{job_id}/cancel": Call("jobs.cancel"),
    "POST /desk/people": Call("users.add links.make", "operator", {"user": "newcomer"}),
    "POST /desk/people/{user}/link": Call("links.make", "operator"),
    "POST /desk/people/{user}/role": Call("users.role", "operator", {"role": "organizer"}),
}


@pytest.fixture
def settings(tmp_path: Path, challenge_file: Path) -> Settings:
    prefix = Path(sys.prefix)
    return Settings(data=tmp_path / "data", challenge=challenge_file, server_env=prefix, trusted_submitters="owner")


@pytest.fixture
def cast(site: Site) -> Iterator[Cast]:
    gathered = casting.gather(site, create_app(site))
    yield gathered
    gathered.client.close()


def newest(site: Site) -> int:
    with reading(site.engine) as session:
        return session.exec(select(AuditRow.id).order_by(col(AuditRow.id).desc())).first() or 0


def lines_after(site: Site, last: int) -> list[AuditRow]:
    with reading(site.engine) as session:
        rows = session.exec(select(AuditRow).where(col(AuditRow.id) > last).order_by(col(AuditRow.id))).all()
        session.expunge_all()
        return list(rows)


def test_every_route_that_writes_leaves_its_line(cast: Cast) -> None:
    app = cast.client.app
    assert isinstance(app, FastAPI)
    served = {route for route in routes(app) if not route.startswith(("GET ", "HEAD "))}
    assert sorted(served - set(WRITES) - set(KEEPS_NOTHING)) == [], "routes without a line in this test"
    assert sorted((set(WRITES) | set(KEEPS_NOTHING)) - served) == [], "lines without a route"
    with unchanging(cast.site) as restore:
        for route, call in WRITES.items():
            if call.before is not None:
                assert call.before(cast).status_code < 400, route
            last = newest(cast.site)
            answer = send(cast, route, call)
            assert answer.status_code < 400, f"{route}: {answer.text[:400]}"
            _check(route, call, lines_after(cast.site, last))
            restore()


def _check(route: str, call: Call, found: list[AuditRow]) -> None:
    assert [row.action for row in found] == call.action.split(), route
    for row in found:
        assert row.actor == ("owner" if call.actor == "visitor" else call.actor), route
        assert row.proof.partition(":")[0] in ("token", "session"), route
        assert row.origin, route
        assert row.target, route


def test_a_refused_call_leaves_none(cast: Cast) -> None:
    last = newest(cast.site)
    for route in ("POST /v1/messages", "DELETE /api/buckets/{namespace}/{name}", "PUT /v1/quotas/{handle}/{budget}"):
        assert send(cast, route, Call("", "other")).status_code in (403, 404)
    assert lines_after(cast.site, last) == []
