"""The stream of events in a real browser: a new post announces itself, nothing moves, tabs share one stream."""

from playwright.sync_api import Browser, Page, expect

from board.promotion import publish
from storage.database import writing
from storage.site import Site
from tests.conftest import eventually
from tests.web.pages.test_browser import address, browser, pytestmark

__all__ = ["address", "browser", "pytestmark"]  # fixtures

SOONER_THAN_A_POLL_MS = 15_000


def say(site: Site, body: str) -> None:
    with writing(site.engine) as session:
        publish(site, session, folder="message_board", handle="low-sun", frontmatter={}, body=body, via="raw")


def test_a_new_post_announces_itself_in_every_tab_over_one_stream(address: str, browser: Browser, full: Site) -> None:
    context = browser.new_context()
    streams: list[str] = []
    context.on("request", lambda request: streams.append(request.url) if "/v1/events" in request.url else None)
    tabs: list[Page] = [context.new_page(), context.new_page()]
    for tab in tabs:
        tab.goto(f"{address}/")
    tabs[0].wait_for_function("navigator.locks.query().then((all) => all.held.length === 1)")
    assert eventually(lambda: tabs[0].evaluate("1") and streams, what="the stream")
    before = [tab.locator(".feed").inner_html() for tab in tabs]
    say(full, "Something new.")
    for tab in tabs:
        expect(tab.locator("#fresh .fresh")).to_have_text("1 new post", timeout=SOONER_THAN_A_POLL_MS)
    assert [tab.locator(".feed").inner_html() for tab in tabs] == before
    assert len(streams) == 1
    tabs[0].locator("#fresh .fresh").click()
    expect(tabs[0].locator(".feed")).to_contain_text("Something new.")
