"""The quota desk, and the bars of an agent's page."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from agents import accounts, quotas, tokens
from agents.quotas import bytes_of
from agents.roles import Role
from agents.scopes import ALL, DEFAULT
from storage import quota_meter
from storage.database import reading, writing
from storage.site import Site
from tests.people import add_agent, add_files, add_person
from tests.web.browser import Browser
from web.app import create_app


@pytest.fixture
def browser(site: Site) -> Iterator[Browser]:
    with writing(site.engine) as session:
        add_agent(site, session, "blue-heron", add_person(site, session, "ada"))
        add_files(site, session, "blue-heron", {"a.bin": b"a" * 95_000})
        kind = bytes_of(site.challenge.limits, "ada")[0]
        quotas.set_limit(session, kind, 100_000, actor="test", reason="A <b>test</b>.", now=site.clock())
    with TestClient(create_app(site), headers={"accept": "text/html"}, follow_redirects=False) as client:
        yield Browser(client, site)


def sign_in(browser: Browser, name: str, role: Role = Role.PERSON) -> None:
    site, scopes = browser.site, ALL if role is Role.OPERATOR else DEFAULT
    with writing(site.engine) as session:
        accounts.add(session, name, role=role, now=site.clock())
        token = tokens.issue(session, name, secret=site.secret, now=site.clock(), scopes=scopes)
    assert browser.sign_in(token).status_code == 303


def meters(page: str) -> list[str]:
    return re.findall(r'role="meter"[^>]*aria-label="([^"]*)"', page)


def test_anybody_sees_an_agents_own_budgets_and_not_what_its_owner_holds(browser: Browser) -> None:
    page = browser.get("/agents/blue-heron").text
    assert meters(page) == [
        "Raw posts in an hour: 0 of 30",
        "Promotions in a minute: 0 of 60",
        "Runs in 24 hours: 0 of 5",
    ]
    assert "95 kB in 2 files" in page
    assert "Storage, all buckets" not in page
    assert "/quotas/" not in page


def test_a_strangers_look_at_an_agent_counts_no_chunks(browser: Browser) -> None:
    assert "of different chunks" in browser.get("/agents/blue-heron").text
    with writing(browser.site.engine) as session:
        quota_meter.forget(session)
    page = browser.get("/agents/blue-heron").text
    assert "95 kB in 2 files" in page
    assert "of different chunks" not in page


def test_the_owner_sees_everything_and_no_form(browser: Browser) -> None:
    sign_in(browser, "ada")
    for path in ("/agents/blue-heron", "/quotas/blue-heron"):
        page = browser.get(path).text
        assert "Storage, all buckets: 95 kB of 100 kB" in meters(page)
        assert 'class="near" width="95.0%"' in page
    assert "A &lt;b&gt;test&lt;/b&gt;." in page
    assert "For operators" not in page
    assert browser.get("/quotas").status_code == 403


def test_others_are_kept_out(browser: Browser) -> None:
    assert browser.get("/quotas/blue-heron").headers["location"].startswith("/signin")
    sign_in(browser, "eve")
    assert browser.get("/quotas/blue-heron").status_code == 403
    answer = browser.form("/quotas/blue-heron", budget="bucket_bytes", action="set", limit="1", reason="x")
    assert answer.status_code == 403


def test_an_operator_sees_who_is_nearly_out_and_sets_and_resets(browser: Browser) -> None:
    sign_in(browser, "boss", Role.OPERATOR)
    assert meters(browser.get("/quotas").text) == ["Storage, all buckets: 95 kB of 100 kB"]
    for fields, shown in (
        ({"action": "set", "limit": "1 GB", "reason": "Needs it."}, "Storage, all buckets: 95 kB of 1.0 GB"),
        ({"action": "reset", "reason": "Done with it."}, None),
    ):
        answer = browser.form("/quotas/blue-heron", budget="bucket_bytes", **fields)
        assert (answer.status_code, answer.headers["location"]) == (303, "/quotas/blue-heron")
        assert (shown in meters(browser.get("/quotas/blue-heron").text)) is (shown is not None)
    with reading(browser.site.engine) as session:
        trail = quotas.changes(session, ["user:ada"])
    assert [(row.action, row.before, row.after, row.actor) for row in trail] == [
        ("reset", 10**9, None, "boss"),
        ("set", 100_000, 10**9, "boss"),
        ("set", None, 100_000, "test"),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "set", "limit": "lots", "reason": "x"},
        {"action": "set", "limit": "5", "reason": " "},
        {"action": "burn", "limit": "5", "reason": "x"},
    ],
)
def test_a_form_that_makes_no_sense_changes_nothing(browser: Browser, fields: dict[str, str]) -> None:
    sign_in(browser, "boss", Role.OPERATOR)
    assert browser.form("/quotas/blue-heron", budget="bucket_bytes", **fields).status_code in (400, 422)
    with reading(browser.site.engine) as session:
        assert len(quotas.changes(session, ["user:ada"])) == 1


def test_a_form_from_elsewhere_changes_nothing(browser: Browser) -> None:
    sign_in(browser, "boss", Role.OPERATOR)
    fields = {"budget": "bucket_bytes", "action": "reset", "reason": "x"}
    assert browser.post("/quotas/blue-heron", fields).status_code == 403
    with reading(browser.site.engine) as session:
        assert len(quotas.changes(session, ["user:ada"])) == 1
