"""URLs echo the address that the client itself used, behind a proxy too, and never a name that isn't ours."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient

from agents import accounts, tokens
from storage.database import writing
from storage.settings import BadSettings, Settings, load
from storage.site import Site, open_site
from tests.conftest import HeldClock
from tests.web.hub.listening import listening
from web.app import create_app

BUCKET = "/api/buckets/race/tiny-a1"


@contextmanager
def served(settings: Settings, clock: HeldClock) -> Iterator[tuple[int, str]]:
    """Serve a site on a free port of this machine; give the port and a token of alice's."""
    site = open_site(settings, clock=clock)
    with writing(site.engine) as session:
        accounts.add(session, "alice", now=site.clock())
        token = tokens.issue(session, "alice", secret=site.secret, now=site.clock())
    with listening(create_app(site)) as port:
        yield port, token
    site.engine.dispose()


def ask(port: int, token: str, host: str, **headers: str) -> tuple[int, dict]:
    """Ask for a token of the store, whose answer names an address twice."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    sent = {"Host": host, "Authorization": f"Bearer {token}", **named}
    connection.request("POST", BUCKET, headers=sent)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


def origin_of(body: dict) -> str:
    return str(body["url"]).removesuffix("/buckets/race/tiny-a1")


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ({}, "http://127.0.0.1"),
        ({"X_Forwarded_Proto": "https"}, "https://127.0.0.1"),
        ({"X_Forwarded_Proto": "https", "X_Forwarded_Host": "board.example"}, "https://board.example"),
        ({"X_Forwarded_Host": "board.example", "X_Forwarded_Port": "8443"}, "http://board.example:8443"),
        ({"X_Forwarded_Host": "board.example:81", "X_Forwarded_Port": "8443"}, "http://board.example:81"),
        (
            {"X_Forwarded_Proto": "https", "X_Forwarded_Host": "board.example", "X_Forwarded_Port": "443"},
            "https://board.example",
        ),
        ({"X_Forwarded_Host": "evil.example, board.example"}, "http://board.example"),
        ({"X_Forwarded_Proto": "javascript"}, "http://127.0.0.1"),
        ({"X_Forwarded_Port": "99999 x"}, "http://127.0.0.1"),
    ],
)
def test_a_trusted_proxy_says_how_the_client_came(
    settings: Settings, clock: HeldClock, sent: dict[str, str], seen: str
) -> None:
    more = {"trusted_proxies": "10.0.0.0/8, 127.0.0.1", "allowed_hosts": "board.example"}
    with served(settings.model_copy(update=more), clock) as (port, token):
        assert origin_of(ask(port, token, "127.0.0.1", **sent)[1]) == seen


def test_nobody_else_is_believed(settings: Settings, clock: HeldClock) -> None:
    more = {"trusted_proxies": "10.0.0.0/8", "allowed_hosts": "board.example"}
    hostile = {"X_Forwarded_Proto": "https", "X_Forwarded_Host": "board.example", "X_Forwarded_For": "10.0.0.1"}
    with served(settings.model_copy(update=more), clock) as (port, token):
        host = f"localhost:{port}"
        assert origin_of(ask(port, token, host, **hostile)[1]) == f"http://{host}"
        assert origin_of(ask(port, token, host, Forwarded="host=board.example")[1]) == f"http://{host}"


def test_a_host_that_is_not_ours_is_refused_through_a_proxy_too(settings: Settings, clock: HeldClock) -> None:
    more = {"trusted_proxies": "127.0.0.0/8", "public_url": "https://board.example/"}
    with served(settings.model_copy(update=more), clock) as (port, token):
        for host, headers in (("evil.example", {}), ("board.example", {"X_Forwarded_Host": "evil.example"})):
            status, body = ask(port, token, host, **headers)
            assert (status, body["error"]["code"]) == (400, "HOST_NOT_ALLOWED")
            assert "PADDOCK_ALLOWED_HOSTS" in body["error"]["hint"]
            assert "evil.example" in body["error"]["message"]
        assert origin_of(ask(port, token, "board.example")[1]) == "http://board.example"


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "evil.example:7860", "localhost:80@evil.example", "local host", "",
     "localhost/evil.example", "[::1].evil.example", "localhost:", "127.0.0.1.", "x" * 300],
)  # fmt: skip
def test_other_hosts_get_a_4xx_that_names_the_setting(site: Site, host: str) -> None:
    with TestClient(create_app(site), base_url="http://127.0.0.1") as http:
        answer = http.get("/v1", headers={"Host": host})
    if host == "127.0.0.1.":  # the same name with the root's dot
        assert answer.status_code == 200
        return
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "HOST_NOT_ALLOWED")
    assert "PADDOCK_ALLOWED_HOSTS" in answer.headers["X-Error-Message"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7860", "127.0.0.1:1", "[::1]", "[::1]:7860", "10.1.2.3:5"])
def test_our_own_names_are_answered(settings: Settings, clock: HeldClock, host: str) -> None:
    site = open_site(settings.model_copy(update={"host": "10.1.2.3"}), clock=clock)
    with TestClient(create_app(site), base_url="http://127.0.0.1") as http:
        assert http.get("/v1", headers={"Host": host}).json()["docs"] == f"http://{host}/docs"
    site.engine.dispose()


def test_an_operator_may_open_it_to_any_name(settings: Settings, clock: HeldClock) -> None:
    site = open_site(settings.model_copy(update={"allowed_hosts": "*"}), clock=clock)
    with TestClient(create_app(site), base_url="http://127.0.0.1") as http:
        assert http.get("/v1", headers={"Host": "any.example"}).status_code == 200
        assert http.get("/v1", headers={"Host": "any example"}).status_code == 400
    site.engine.dispose()


def test_the_clients_own_address_reaches_the_audit_log(settings: Settings, clock: HeldClock) -> None:
    with served(settings.model_copy(update={"trusted_proxies": "127.0.0.1,10.0.0.0/8"}), clock) as (port, token):
        ask(port, token, "localhost", X_Forwarded_For="6.6.6.6, 192.0.2.7, 10.0.0.5")
    site = open_site(settings)
    with writing(site.engine) as session:
        rows = session.connection().exec_driver_sql("SELECT origin FROM audit WHERE action = 'buckets.create'").all()
    site.engine.dispose()
    assert [row[0] for row in rows] == ["192.0.2.7"]


def test_a_proxy_that_is_no_address_stops_the_start() -> None:
    with pytest.raises(BadSettings, match="PADDOCK_TRUSTED_PROXIES"):
        load(trusted_proxies="proxy.local")
