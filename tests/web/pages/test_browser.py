"""The pages in a real browser: nothing scrolls sideways on a phone, nothing is blocked, live parts move."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, expect, sync_playwright

from runner.rows import JobRow
from storage.database import writing
from storage.site import Site
from tests.conftest import eventually
from tests.web.pages.conftest import make_app
from tests.web.pages.test_pages import paths

CHROMIUM = Path("/usr/bin/chromium")
pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"NO BROWSER: {CHROMIUM} is missing, pages go unseen")


@pytest.fixture
def address(full: Site) -> Iterator[str]:
    """The full site behind a real server."""
    server = uvicorn.Server(uvicorn.Config(make_app(full), host="127.0.0.1", port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started, what="the server's start")
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def browser() -> Iterator[Browser]:
    arguments = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=str(CHROMIUM), args=arguments)
        yield opened
        opened.close()


def test_no_page_scrolls_sideways_on_a_phone_and_none_is_refused_anything(
    address: str, browser: Browser, full: Site
) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    for path in paths(full):
        page.goto(address + path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 390, f"{path} is {width} px wide"
    assert said == []


def test_a_running_job_moves_without_a_reload(address: str, browser: Browser, full: Site) -> None:
    page = browser.new_page()
    page.goto(f"{address}/jobs/job_0003")
    expect(page.locator("#live")).to_contain_text("61 % of the prompts")
    with writing(full.engine) as session:
        job = session.get_one(JobRow, "job_0003")
        job.progress_done = 115
        session.add(job)
    expect(page.locator("#live")).to_contain_text("90 % of the prompts", timeout=20_000)


def test_without_script_the_copy_buttons_stay_away_and_the_theme_still_switches(address: str, browser: Browser) -> None:
    page = browser.new_context(java_script_enabled=False, color_scheme="light").new_page()
    page.goto(f"{address}/")
    expect(page.locator(".copy").first).to_be_hidden()
    page.get_by_role("button", name="Switch to dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
