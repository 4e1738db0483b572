"""Browsers sign in, stay a while, and are signed out at once when somebody says so."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient

from agents import accounts, links, sessions, tokens
from agents.roles import Role
from agents.scopes import Scope
from storage.database import reading, writing
from storage.site import Site
from tests.conftest import HeldClock
from tests.web.browser import Browser
from web.app import create_app


@pytest.fixture
def token(site: Site) -> str:
    with writing(site.engine) as session:
        accounts.add(session, "ada", now=site.clock())
        return tokens.issue(session, "ada", secret=site.secret, now=site.clock())


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    with TestClient(create_app(site), headers={"accept": "text/html"}, follow_redirects=False) as opened:
        yield opened


@pytest.fixture
def browser(site: Site, client: TestClient) -> Browser:
    return Browser(client, site)


def test_a_token_signs_a_browser_in_and_only_hashes_are_kept(browser: Browser, site: Site, token: str) -> None:
    answer = browser.sign_in(token)
    cookie = answer.headers["set-cookie"]
    assert (answer.status_code, answer.headers["location"]) == (303, "/account")
    assert {"HttpOnly", "SameSite=lax"} <= {part.strip() for part in cookie.split(";")}
    assert "Secure" not in cookie
    assert "Sign out everywhere" in browser.get("/account").text
    secret = cookie.partition("=")[2].partition(";")[0]
    with reading(site.engine) as session:
        row = sessions.sessions_of(session, "ada", now=site.clock())[0]
        assert secret not in row.model_dump_json()


def test_the_cookie_of_an_encrypted_connection_is_for_such_connections_alone(site: Site, token: str) -> None:
    with TestClient(create_app(site), base_url="https://race.test", follow_redirects=False) as client:
        assert "Secure" in Browser(client, site).sign_in(token).headers["set-cookie"]


@pytest.mark.parametrize("wrong", ["", "pdk_x", "pdk_" + "a" * 38, "not a token", "pdk_\ud800"])
def test_what_is_no_token_signs_nobody_in(browser: Browser, wrong: str) -> None:
    answer = browser.post("/signin", {"token": wrong.encode("utf-8", "surrogatepass").decode("utf-8", "replace")})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "That is no valid token." in answer.text


@pytest.mark.parametrize("back", ["//evil.example", "/\\evil.example", "https://evil.example", "/signin", "x", "/a\nb"])
def test_signing_in_leads_nowhere_else(browser: Browser, token: str, back: str) -> None:
    assert browser.sign_in(token, back=back).headers["location"] == "/account"


def test_a_page_for_people_asks_strangers_to_sign_in_and_brings_them_back(browser: Browser, token: str) -> None:
    answer = browser.get("/account")
    assert (answer.status_code, answer.headers["location"]) == (303, "/signin?next=%2Faccount")
    assert browser.sign_in(token, back="/queue").headers["location"] == "/queue"


def test_an_idle_session_ends_and_a_used_one_ends_when_it_is_old(
    browser: Browser, clock: HeldClock, token: str
) -> None:
    browser.sign_in(token)
    for _ in range(5):
        clock.now += sessions.IDLE - timedelta(seconds=1)
        if _ < 4:
            assert browser.get("/account").status_code == 200
    assert browser.get("/account").status_code == 303  # 30 days are over
    browser.sign_in(token)
    clock.now += sessions.IDLE
    assert browser.get("/account").status_code == 303


@pytest.mark.parametrize("what", ["revoked token", "closed account", "signed out", "signed out elsewhere"])
def test_a_session_ends_at_once(browser: Browser, site: Site, token: str, what: str) -> None:
    browser.sign_in(token)
    assert browser.get("/account").status_code == 200
    with writing(site.engine) as session:
        if what == "revoked token":
            tokens.revoke(session, token, secret=site.secret, now=site.clock())
        elif what == "closed account":
            accounts.set_role(session, "ada", Role.VISITOR)
        elif what == "signed out elsewhere":
            sessions.end_all(session, "ada", now=site.clock())
    if what == "signed out":
        kept = browser.client.cookies["paddock_session"]
        assert browser.form("/signout").headers["location"] == "/"
        browser.client.cookies.set("paddock_session", kept)
    assert browser.get("/account").status_code == 303


def test_signing_out_everywhere_leaves_no_browser_in(site: Site, token: str) -> None:
    with TestClient(create_app(site), follow_redirects=False) as one, TestClient(create_app(site)) as other:
        first, second = Browser(one, site), Browser(other, site)
        first.sign_in(token)
        second.sign_in(token)
        assert first.form("/signout/everywhere").status_code == 303
        assert "Sign out everywhere" not in second.get("/account").text


def test_a_session_may_do_what_its_token_may(browser: Browser, site: Site) -> None:
    with writing(site.engine) as session:
        accounts.add(session, "chief", role=Role.OPERATOR, now=site.clock())
        weak = tokens.issue(session, "chief", secret=site.secret, now=site.clock(), scopes=frozenset({Scope.READ}))
    browser.sign_in(weak)
    assert browser.get("/audit").status_code == 403
    answer = browser.form("/account/tokens", scopes="operate")
    assert (answer.status_code, "SCOPE_MISSING" in answer.text) == (403, True)


def test_a_link_signs_in_once_and_a_look_at_it_does_not_use_it_up(browser: Browser, site: Site, token: str) -> None:
    with writing(site.engine) as session:
        path = links.make(session, "ada", secret=site.secret, now=site.clock())
    for _ in range(2):
        assert "Sign in as <bdi>ada</bdi>" in browser.get(path).text
    assert browser.post(path, {}).status_code == 303
    assert "Sign out everywhere" in browser.get("/account").text
    browser.client.cookies.clear()
    assert browser.get(path).status_code == 404
    again = browser.post(path, {})
    assert (again.status_code, "set-cookie" in again.headers) == (404, False)


def test_a_link_lasts_a_quarter_of_an_hour(browser: Browser, site: Site, clock: HeldClock, token: str) -> None:
    with writing(site.engine) as session:
        path = links.make(session, "ada", secret=site.secret, now=site.clock())
    clock.now += links.LIFE
    assert browser.post(path, {}).status_code == 404


def test_a_link_of_an_account_that_was_closed_signs_nobody_in(browser: Browser, site: Site, token: str) -> None:
    with writing(site.engine) as session:
        path = links.make(session, "ada", secret=site.secret, now=site.clock())
        accounts.set_role(session, "ada", Role.VISITOR)
    assert browser.get(path).status_code == 404
    answer = browser.post(path, {})
    assert (answer.status_code, "set-cookie" in answer.headers) == (404, False)


def test_signing_out_everywhere_ends_ones_links_and_nobody_elses(browser: Browser, site: Site, token: str) -> None:
    with writing(site.engine) as session:
        accounts.add(session, "eve", now=site.clock())
        paths = {name: links.make(session, name, secret=site.secret, now=site.clock()) for name in ("ada", "eve")}
    browser.sign_in(token)
    assert browser.form("/signout/everywhere").status_code == 303
    assert browser.post(paths["ada"], {}).status_code == 404
    assert browser.post(paths["eve"], {}).status_code == 303
    with writing(site.engine) as session:
        fresh = links.make(session, "ada", secret=site.secret, now=site.clock())
    assert browser.post(fresh, {}).status_code == 303


def test_a_form_of_another_site_does_nothing(browser: Browser, site: Site, token: str) -> None:
    assert browser.client.post("/signin", data={"token": token}).status_code == 403  # nothing says where it stood
    browser.sign_in(token)
    word = browser.word()
    for headers in ({}, {"origin": "https://evil.example"}, {"origin": "null"}, {"referer": "https://evil.example/x"}):
        answer = browser.client.post("/signout", data={"csrf": word}, headers=headers)
        assert (answer.status_code, "FORGED_FORM" in answer.text) == (403, True)
    for forged in ("", "é", word[:-1], browser.site.secret.hex()):
        assert browser.post("/signout", {"csrf": forged}).status_code == 403
    assert (
        browser.client.post(
            "/signout", data={"csrf": word}, headers={"referer": "http://testserver/account"}
        ).status_code
        == 303
    )


def test_a_form_of_another_session_does_nothing(site: Site, token: str) -> None:
    with TestClient(create_app(site), follow_redirects=False) as one, TestClient(create_app(site)) as other:
        first, second = Browser(one, site), Browser(other, site)
        first.sign_in(token)
        second.sign_in(token)
        assert first.post("/signout", {"csrf": second.word()}).status_code == 403


def test_a_cookie_opens_nothing_of_the_api(browser: Browser, token: str) -> None:
    browser.sign_in(token)
    headers = {"origin": "http://testserver", "accept": "application/json"}
    assert browser.client.get("/v1/me", headers=headers).status_code == 401
    said = {"agent_id": "human-ada", "body": "Hello."}
    assert browser.client.post("/v1/messages", json=said, headers=headers).status_code == 401
    assert browser.client.post("/api/buckets/race/tiny-x", headers=headers).status_code == 401


def test_tokens_are_made_shown_once_rotated_and_revoked_on_the_page(browser: Browser, site: Site, token: str) -> None:
    browser.sign_in(token)
    made = browser.form("/account/tokens", label="laptop", days="30")
    text = browser.token_in(made.text)
    assert made.headers["cache-control"] == "no-store"
    assert text not in browser.get("/account").text
    with reading(site.engine) as session:
        row = tokens.find_row(session, text, secret=site.secret)
    assert row is not None
    assert (row.label, row.expires_at) == ("laptop", site.clock() + timedelta(days=30))
    rotated = browser.token_in(browser.form(f"/account/tokens/{row.id}/rotate").text)
    with reading(site.engine) as session:
        assert tokens.find_caller(session, text, secret=site.secret, now=site.clock()) is None
        fresh = tokens.find_row(session, rotated, secret=site.secret)
    assert fresh is not None
    assert browser.form(f"/account/tokens/{fresh.id}/revoke").headers["location"] == "/account"
    with reading(site.engine) as session:
        assert tokens.find_caller(session, rotated, secret=site.secret, now=site.clock()) is None


def test_another_persons_tokens_and_sessions_are_not_there(browser: Browser, site: Site, token: str) -> None:
    with writing(site.engine) as session:
        accounts.add(session, "eve", now=site.clock())
        hers = tokens.create(session, "eve", secret=site.secret, now=site.clock()).row.id
        place = sessions.Place()
        theirs = sessions.start(session, "eve", secret=site.secret, now=site.clock(), place=place).row.id
    browser.sign_in(token)
    for path in (f"/account/tokens/{hers}/revoke", f"/account/tokens/{hers}/rotate", f"/account/sessions/{theirs}/end"):
        assert browser.form(path).status_code == 404


def test_a_session_is_listed_with_where_it_came_from_and_its_last_use(
    browser: Browser, clock: HeldClock, token: str
) -> None:
    browser.client.headers["user-agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    browser.sign_in(token)
    clock.forward(minutes=5)
    browser.get("/account")
    page = browser.get("/account").text
    assert "Firefox on Linux" in page
    assert "testclient" in page
    assert "5 min ago" in page  # when it was made
    assert "just now" in page  # when it was used


def test_only_an_operator_is_offered_what_only_operators_do(browser: Browser, site: Site, token: str) -> None:
    for name, is_offered in (("ada", False), ("chief", True)):
        with writing(site.engine) as session:
            accounts.add(session, "chief", role=Role.OPERATOR, now=site.clock())
            path = links.make(session, name, secret=site.secret, now=site.clock())
        browser.post(path, {})
        assert ('value="operate"' in browser.get("/account").text) == is_offered
        assert browser.form("/account/tokens", scopes="operate").status_code == (200 if is_offered else 403)


def test_a_token_whose_one_scope_its_holder_lost_signs_nobody_in(browser: Browser, site: Site) -> None:
    with writing(site.engine) as session:
        accounts.add(session, "bob", role=Role.OPERATOR, now=site.clock())
        scopes = frozenset({Scope.OPERATE})
        token = tokens.issue(session, "bob", secret=site.secret, now=site.clock(), scopes=scopes)
        accounts.set_role(session, "bob", Role.PERSON)
    answer = browser.sign_in(token)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
