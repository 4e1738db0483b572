"""A real browser without script signs in, makes and ends tokens, and signs out, on a phone."""

import re
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, expect

from agents import accounts, links, tokens
from storage.database import writing
from storage.site import Site
from tests.conftest import eventually
from tests.web.pages.test_browser import browser, pytestmark  # noqa: F401 - a fixture and the reason to skip
from web.app import create_app

NAME = "a-person-with-a-name-as-long-as-is"


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    """The whole application behind a real server."""
    server = uvicorn.Server(uvicorn.Config(create_app(site), host="127.0.0.1", port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started, what="the server's start")
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_signing_in_and_out_works_without_script_on_a_phone(address: str, browser: Browser, site: Site) -> None:  # noqa: F811
    with writing(site.engine) as session:
        accounts.add(session, NAME, now=site.clock())
        token = tokens.issue(session, NAME, secret=site.secret, now=site.clock())
    page = browser.new_context(java_script_enabled=False, viewport={"width": 360, "height": 800}).new_page()
    page.goto(f"{address}/account")
    expect(page).to_have_url(re.compile(r"/signin\?next=%2Faccount$"))
    page.locator("#token").fill("pdk_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("That is no valid token.")
    page.locator("#token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    page.locator("#label").fill("my laptop")
    page.get_by_role("button", name="Make a token").click()
    expect(page.locator("code").first).to_have_text(re.compile(r"^pdk_\w{38}$"))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Revoke my laptop").click()
    expect(page.get_by_text("my laptop")).to_have_count(0)
    page.get_by_role("button", name="Sign out everywhere").click()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    with writing(site.engine) as session:
        link = links.make(session, NAME, secret=site.secret, now=site.clock())
    page.goto(f"{address}{link}")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
