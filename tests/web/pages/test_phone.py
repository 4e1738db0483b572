"""Every kind of page in a real browser, narrow and wide, as an operator sees it: no sideways scroll, nothing refused.

And what a parser can tell of each of them: tables are named and their heads say of what, fields have labels.
"""

import threading
from collections.abc import Iterator

import pytest
import uvicorn
from playwright.sync_api import Browser, Page

from agents import sessions
from agents.roles import Role
from agents.scopes import ALL
from agents.sessions import Place
from board import messages, taskforces, taskforces_adding
from board.messages import Wish
from storage.buckets import Put
from storage.database import writing
from storage.site import Site
from tests.conftest import eventually
from tests.people import add_person, caller_of
from tests.web.pages.test_browser import browser, pytestmark  # noqa: F401 - a fixture and the reason to skip
from tests.web.pages.test_pages import paths
from web.app import create_app
from web.sessions import COOKIE

WIDTHS = (360, 1200)
LONG = "x" * 200
BUCKET = "/buckets/race/tiny-red-kettle"
FAULTS = """() => {
  const faults = [];
  for (const table of document.querySelectorAll("main table:not(.prose table)")) {
    if (!table.caption || !table.caption.textContent.trim()) faults.push("a table without a caption");
    for (const th of table.querySelectorAll("th:not([scope])")) faults.push("no scope: " + th.textContent);
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!field.labels.length && !field.ariaLabel) faults.push("no label: " + field.outerHTML);
  }
  for (const el of document.querySelectorAll("a, button")) {
    if (!(el.ariaLabel || el.textContent.trim())) faults.push("no words: " + el.outerHTML);
  }
  return faults;
}"""


@pytest.fixture
def cookie(full: Site) -> str:
    """The session of an operator who has posts in the inbox, on a site with a taskforce and odd files."""
    with writing(full.engine) as session:
        boss = caller_of(full, session, add_person(full, session, "boss", role=Role.OPERATOR))
        ada = caller_of(full, session, add_person(full, session, "ada"))
        messages.post_raw(full, session, ada, "human-ada", f"# {LONG}\n\n@human-boss `{LONG}` {LONG}", Wish())
        taskforces.open_raw(full, session, boss, "speed", "human-boss", f"# {LONG}\n\n|{LONG}|b|\n|-|-|\n|1|2|")
        taskforces_adding.add_note_raw(full, session, ada, "speed", "human-ada", LONG)
        files = {f"{LONG}.txt": LONG * 5, "sub/README.md": f"# {LONG}", "a.bin": "\0"}
        puts = [Put(path, text.encode()) for path, text in files.items()]
        full.buckets(session).apply(full.scratch("red-kettle"), puts)
        place = Place("127.0.0.1", "Firefox on Linux")
        return sessions.start(session, "boss", secret=full.secret, now=full.clock(), place=place, scopes=ALL).cookie


@pytest.fixture
def address(full: Site) -> Iterator[str]:
    """The whole application behind a real server."""
    server = uvicorn.Server(uvicorn.Config(create_app(full), host="127.0.0.1", port=0, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    eventually(lambda: server.started, what="the server's start")
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def places(site: Site) -> list[str]:
    """One address of each kind of page, and the longest things on them."""
    kinds: dict[str, str] = {}
    for path in paths(site):
        kinds[path if path.count("/") < 2 else path.rpartition("/")[0]] = path
    more = ["/inbox/human-boss", "/taskforces", "/taskforces/speed", "/stats", "/join", "/desk", "/post", "/account"]
    more += ["/audit", "/quotas", "/quotas/red-kettle", "/moderation", "/search?q=bridge", "/leaderboard?view=all"]
    more += [BUCKET, f"{BUCKET}/tree/sub", f"{BUCKET}/tree/{LONG}.txt", f"{BUCKET}/tree/a.bin"]
    return [*kinds.values(), "/jobs/job_0001", "/jobs/job_0003", *more]


@pytest.mark.parametrize("width", WIDTHS)
def test_no_kind_of_page_scrolls_sideways_or_lacks_a_name_for_anything(
    width: int,
    address: str,
    cookie: str,
    browser: Browser,  # noqa: F811
    full: Site,
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    context.add_cookies([{"name": COOKIE, "value": cookie, "url": address}])
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
    found = {path: fault for path in places(full) if (fault := faults_of(page, address + path, width))}
    assert found == {}
    assert said == []


def faults_of(page: Page, url: str, most: int) -> list[str]:
    """Open a page and list what is wrong with it."""
    answer = page.goto(url, wait_until="domcontentloaded")
    found = [] if answer and answer.status == 200 else ["it isn't there"]
    width = page.evaluate("document.documentElement.scrollWidth")
    found += [f"it is {width} px wide"] if width > most else []
    return [*found, *page.evaluate(FAULTS)]
