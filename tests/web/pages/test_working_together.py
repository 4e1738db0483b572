"""Taskforces, what the race took, how to join, and the operators' desk, as a browser gets them."""

import re
import shlex
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from agents import accounts, tokens
from agents.roles import Role
from agents.scopes import ALL, DEFAULT
from board import taskforces, taskforces_adding
from board.onboarding import Audience, render
from board.rows import TraceRow
from storage.database import writing
from storage.site import Site
from tests.people import add_agent, add_files, add_person, caller_of
from tests.web.browser import Browser
from tests.web.pages.counting import statements
from tests.web.pages.race import Race
from tests.web.pages.reading import Page
from web.app import create_app

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def browser(site: Site) -> Iterator[Browser]:
    with writing(site.engine) as session:
        token = add_person(site, session, "ada")
        add_agent(site, session, "blue-heron", token)
        add_files(site, session, "blue-heron", {"scores.csv": b"a,b\n"})
        ada = caller_of(site, session, token)
        body = f"# Which **int4** kernel\n\nAbout {EVIL}.\n"
        taskforces.open_raw(site, session, ada, "int4", "blue-heron", body)
        source = f"{site.scratch('blue-heron').uri}/scores.csv"
        taskforces_adding.add_file(site, session, ada, "int4", source, "scores_blue-heron.csv")
    with TestClient(create_app(site), headers={"accept": "text/html"}, follow_redirects=False) as client:
        yield Browser(client, site)


def add_notes(site: Site, count: int, *, name: str = "int4") -> None:
    with writing(site.engine) as session:
        token = add_person(site, session, "ada")
        ada = caller_of(site, session, token)
        for number in range(count):
            site.clock.forward(minutes=5)  # type: ignore[attr-defined]  # a held clock: the budget is five a minute
            taskforces_adding.add_note_raw(site, session, ada, name, "blue-heron", f"Note {number:02d} {EVIL}")


def enter(browser: Browser, name: str, role: Role) -> None:
    site = browser.site
    with writing(site.engine) as session:
        accounts.add(session, name, role=role, now=site.clock())
        scopes = ALL if role is Role.OPERATOR else DEFAULT
        token = tokens.issue(session, name, secret=site.secret, now=site.clock(), scopes=scopes)
    browser.client.cookies.clear()
    assert browser.sign_in(token).status_code == 303


def test_taskforces_are_listed_with_their_people_and_can_be_searched(browser: Browser) -> None:
    page = Page(browser.get("/taskforces").text)
    assert page.faults == []
    assert "Which int4 kernel" in page.text
    assert "/taskforces/int4" in page.links
    assert "notes" in page.html
    assert "1 of 1 hold" in Page(browser.get("/taskforces?q=KERNEL").text).text
    assert "Nothing found" in Page(browser.get("/taskforces?q=none").text).text


def test_a_taskforce_shows_its_readme_its_notes_in_pages_and_its_files(browser: Browser) -> None:
    add_notes(browser.site, 25)
    first = Page(browser.get("/taskforces/int4").text)
    assert first.faults == []
    assert "25 notes" in first.text
    older = next(link for link in first.links if "before=" in link)
    second = Page(browser.get(older).text)
    seen = re.findall(r"Note (\d\d)", first.text) + re.findall(r"Note (\d\d)", second.text)
    assert seen == [f"{number:02d}" for number in reversed(range(25))]
    file = next(link for link in first.links if link.endswith("scores_blue-heron.csv"))
    assert "a,b" in Page(browser.get(file).text).text
    assert browser.get("/taskforces/none").status_code == 404


def test_lists_cost_as_many_statements_for_many_rows_as_for_few(browser: Browser) -> None:
    site = browser.site
    counts = []
    for _ in range(2):
        with statements(site.engine) as listed:
            assert browser.get("/taskforces").status_code == 200
        with statements(site.engine) as opened:
            assert browser.get("/taskforces/int4").status_code == 200
        counts.append((len(listed), len(opened)))
        with writing(site.engine) as session:
            ada = caller_of(site, session, add_person(site, session, "ada"))
            for number in range(12):
                site.clock.forward(minutes=5)  # type: ignore[attr-defined]
                taskforces.open_raw(site, session, ada, f"more-{number}", "blue-heron", "One more.")
        add_notes(site, 12)
    assert counts[0] == counts[1]
    assert max(counts[0]) < 30


def test_the_queue_costs_as_many_statements_for_many_runs_as_for_few(browser: Browser) -> None:
    counts = []
    for first in (1, 20):
        with writing(browser.site.engine) as session:
            race = Race(browser.site, session)
            for number in range(first, first + 8):
                race.job(number, "blue-heron", ("queued", "measuring", "completed", "failed")[number % 4])
        with statements(browser.site.engine) as seen:
            assert browser.get("/queue").status_code == 200
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_what_a_session_does_not_report_is_a_dash_and_never_zero(browser: Browser) -> None:
    with writing(browser.site.engine) as session:
        for number, total in enumerate((1_200_300, None)):
            row = TraceRow(
                agent="blue-heron",
                session_id=f"s{number}",
                promoted_at=browser.site.clock(),
                harness=EVIL,
                model="a-model",
                share="stats",
                completeness="full",
                total_tokens=total,
                haystack="",
                body="",
                frontmatter={},
                content_digest="0" * 64,
            )
            session.add(row)
    page = Page(browser.get("/stats").text)
    assert page.faults == []
    assert "All 1,200,300" in page.text
    assert "Read – Written –" in page.text
    assert "2 1 report their tokens" in page.text


def test_the_commands_to_join_are_those_of_llms_txt_with_the_agents_id_in_them(browser: Browser) -> None:
    page = browser.get("/join?agent=Red%20Fox%27%3B%20rm%20-rf%20%24HOME").text
    prompt, commands = (_text(code) for code in re.findall(r"<pre[^>]*><code>(.*?)</code>", page, re.S))
    assert "Your agent id is redfoxrm-rfhome" in prompt
    assert "http://testserver/llms.txt" in prompt
    assert "rm -rf" not in commands
    text = render(browser.site, Audience.LLMS, "http://testserver")
    for call in ("hf buckets create --exist-ok", "printf %s", ".bucket-sync-handshake", "hf buckets sync ./mine"):
        assert call in commands
        assert call in text
    for path in re.findall(r"http://testserver(/v1/[a-z/]+)", commands):
        assert path in text
    assert '"agent_id": "redfoxrm-rfhome"' in commands
    assert shlex.split(commands, comments=True)
    assert "&lt;script&gt;" not in browser.get("/join?agent=%3Cscript%3E%F0%9F%98%80").text


def _text(html: str) -> str:
    return Page(html).text


def test_the_desk_makes_links_that_sign_in_once_and_changes_roles(browser: Browser) -> None:
    enter(browser, "boss", Role.OPERATOR)
    page = browser.form("/desk/people", user="newcomer")
    assert page.headers["cache-control"] == "no-store"
    link = re.search(r"<code>http://testserver(/signin/link/[^<]+)</code>", page.text)
    assert link
    assert link[1] not in browser.get("/desk").text
    assert browser.form("/desk/people/newcomer/role", role="organizer").status_code == 303
    assert "newcomer organizer" in Page(browser.get("/audit").text).text
    assert browser.form("/desk/people/boss/role", role="person").status_code == 403
    assert browser.form("/desk/people/nobody/link").status_code == 404
    assert browser.form("/desk/people", user="Not A Name").status_code == 400
    browser.client.cookies.clear()
    assert browser.post(link[1], {}).status_code == 303
    assert "organizer" in Page(browser.get("/account").text).text
    assert browser.get("/desk").status_code == 403
    assert browser.post(link[1], {}).status_code == 404


def test_the_way_to_the_desk_is_shown_to_operators_alone(browser: Browser) -> None:
    for name, role in (("eve", Role.PERSON), ("olga", Role.ORGANIZER), ("boss", Role.OPERATOR)):
        enter(browser, name, role)
        links = Page(browser.get("/queue").text).links
        assert ("/desk" in links) is (role is Role.OPERATOR)
        assert f"/inbox/human-{name}" in links
