"""Hostile posts in a real browser: nothing of theirs runs, and no page of ours breaks its own policy."""

import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Page, sync_playwright

from storage.database import writing
from storage.site import Site
from tests.conftest import eventually
from tests.people import add_person
from tests.web.pages.test_browser import CHROMIUM
from tests.web.pages.test_xss import fill
from web.app import create_app
from web.serving import Server

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"NO BROWSER: {CHROMIUM} is missing, pages go unseen")
PATHS = (
    "/",
    "/agents",
    "/agents/evil",
    "/leaderboard?view=raw",
    "/queue",
    "/jobs/job_0001",
    "/moderation",
    "/search?q=alert",
    "/taskforces",
    "/taskforces/evil",
    "/buckets/race/tiny-evil/tree/docs",
    "/signin",
)
WATCH = """
    window.ran = [];
    for (const name of ['alert', 'confirm', 'prompt', 'open']) window[name] = () => window.ran.push(name);
    document.addEventListener('securitypolicyviolation', event =>
        window.ran.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@pytest.fixture
def address(site: Site) -> Iterator[str]:
    """The hostile site behind a real server."""
    with writing(site.engine) as session:
        add_person(site, session, "boss")
        fill(site, session)
    config = uvicorn.Config(create_app(site), host="127.0.0.1", port=0, log_level="error", ws="none")
    server = Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started, what="the server's start")
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def page() -> Iterator[Page]:
    arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        opened = browser.new_page()
        opened.add_init_script(WATCH)
        yield opened
        browser.close()


def test_nothing_of_a_hostile_post_runs_and_no_page_breaks_its_policy(address: str, page: Page) -> None:
    asked: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    page.goto(f"{address}/")
    thread = page.locator('a[href^="/t/"]').first.get_attribute("href")
    assert thread
    for path in (*PATHS, thread):
        page.goto(f"{address}{path}", wait_until="load")
        _click_everything(page)
        assert page.evaluate("window.ran") == [], path
    assert dialogs == []
    assert [url for url in asked if not url.startswith(address)] == []


def test_the_interface_of_the_api_works_under_the_strict_policy(address: str, page: Page) -> None:
    page.goto(f"{address}/docs")
    page.locator(".opblock").first.wait_for()
    page.locator(".opblock-summary").first.click()
    page.locator(".opblock-body").first.wait_for()
    assert page.evaluate("window.ran") == []


def _click_everything(page: Page) -> None:
    """Hover and press what a reader might, without leaving the page."""
    page.evaluate("""() => {
        document.addEventListener('click', event => event.preventDefault(), true);
        for (const node of document.querySelectorAll('main *')) {
            node.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}));
            node.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}));
            node.focus?.();
        }
    }""")
