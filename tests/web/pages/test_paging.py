"""Lists of everybody come in pages, whose union is everybody, once."""

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session

from agents import accounts, tokens
from agents.roles import Role
from agents.rows import AgentRow
from agents.scopes import ALL
from board.rows import TraceRow
from storage.database import writing
from storage.site import Site
from tests.web.browser import Browser
from tests.web.pages.counting import statements
from tests.web.pages.race import AGENTS
from web.app import create_app

MANY = 120
PAGE = 50


def crowd(session: Session) -> list[str]:
    """Register many agents, as rows; they are named so that order by text and by number agree."""
    names = [f"agent-{number:03d}" for number in range(MANY)]
    fixed = {"model": "m", "harness": "h", "tools": [], "agent_bucket": "b", "joined": "2026", "content_digest": ""}
    session.add_all([AgentRow(agent_id=name, hf_user=f"of-{name}", bio="A bio.", **fixed) for name in names])
    return names


def walk(browser: TestClient, path: str, name: str) -> list[list[str]]:
    """Follow the links to further pages; `name` matches what a page lists."""
    pages = []
    while path:
        text = browser.get(path).text
        pages.append(list(dict.fromkeys(re.findall(name, text))))
        link = re.search(r'href="([^"]+)" rel="next"', text)
        path = link[1].replace("&amp;", "&") if link else ""
    return pages


@pytest.fixture
def operator(site: Site) -> Iterator[TestClient]:
    """An operator's browser."""
    with writing(site.engine) as session:
        accounts.add(session, "zoe", role=Role.OPERATOR, now=site.clock())
        token = tokens.issue(session, "zoe", secret=site.secret, now=site.clock(), scopes=ALL)
    with TestClient(create_app(site), headers={"accept": "text/html"}, follow_redirects=False) as client:
        assert Browser(client, site).sign_in(token).status_code == 303
        yield client


def test_agents_come_in_pages_the_placed_ones_first(client: TestClient, full: Site) -> None:
    before = walk(client, "/agents", r'href="/agents/([a-z0-9-]+)"')
    with writing(full.engine) as session:
        names = crowd(session)
    pages = walk(client, "/agents", r'href="/agents/([a-z0-9-]+)"')
    assert [len(found) for found in pages] == [PAGE, PAGE, MANY + len(AGENTS) - 2 * PAGE]
    found = [name for page in pages for name in page]
    assert sorted(found) == sorted([*names, *AGENTS])
    assert found[:3] == before[0][:3]
    assert [name for name in found if name in names] == names
    assert f"{MANY + len(AGENTS)} agents" in client.get("/agents").text
    for cursor in ("nobody", "%22%3E", found[-1]):
        assert client.get(f"/agents?after={cursor}").status_code == 200


def test_a_page_of_agents_asks_as_often_and_describes_no_others(client: TestClient, full: Site) -> None:
    with statements(full.engine) as few:
        client.get("/agents")
    with writing(full.engine) as session:
        crowd(session)
    with statements(full.engine) as many:
        client.get("/agents")
    assert len(many) == len(few)
    assert [each for each in many if "agents.bio" in each and " IN (" not in each] == []


def test_the_quota_desk_comes_in_pages(operator: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        names = crowd(session)
    pages = walk(operator, "/quotas", r'href="/quotas/(agent-\d+)"')
    assert [len(found) for found in pages] == [PAGE, PAGE, MANY - 2 * PAGE]
    assert [name for page in pages for name in page] == names
    assert f"{MANY} agents" in operator.get("/quotas").text
    assert "No agent’s name comes after" in operator.get("/quotas?after=zzz").text


def test_the_desk_lists_people_in_pages(operator: TestClient, site: Site) -> None:
    names = [f"person-{number:03d}" for number in range(MANY)]
    with writing(site.engine) as session:
        for name in names:
            accounts.add(session, name, now=site.clock())
    pages = walk(operator, "/desk", r'action="/desk/people/(person-\d+)/role"')
    assert [name for page in pages for name in page] == names
    assert max(len(found) for found in pages) == PAGE
    assert f"{MANY + 1} people" in operator.get("/desk").text


def test_sums_are_shown_for_the_largest_groups_alone(client: TestClient, site: Site) -> None:
    fixed = {"share": "stats", "completeness": "full", "frontmatter": {}, "body": "", "haystack": "", "harness": "h"}
    with writing(site.engine) as session:
        for number in range(MANY):
            row = {"agent": f"agent-{number:03d}", "session_id": "s", "model": "m", "content_digest": ""}
            session.add(TraceRow(promoted_at=site.clock(), total_tokens=number, **fixed, **row))
    text = client.get("/stats").text
    assert f"The first {PAGE} of {MANY}" in text
    assert "agent-119" in text
    assert "agent-069" not in text.partition("Newest sessions")[0]
