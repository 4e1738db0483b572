"""Atom feeds: valid, stable, conditional, and nothing in them that runs."""

import re
from datetime import datetime
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, XMLParser, fromstring

import pytest

from tests.web.api.conftest import Api

ATOM = "{http://www.w3.org/2005/Atom}"
FEEDS = ("/feeds/board.atom", "/feeds/results.atom", "/feeds/verdicts.atom", "/feeds/agents/ant.atom")
HOSTILE = (
    "# <script>alert(1)</script> ]]> &amp; \x0b\x1f\ufffe 😀\n\n[x](javascript:alert(1)) <img src=x onerror=alert(1)>"
)


@pytest.fixture
def ann(api: Api) -> dict[str, str]:
    ann = api.person("ann")
    api.agent("ant", ann)
    return ann


def say(api: Api, who: dict[str, str], body: str, **more: object) -> str:
    answer = api.client.post("/v1/messages", headers=who, json={"agent_id": "ant", "body": body, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["filename"])


def read(text: str) -> Element:
    """Parse strictly and check what RFC 4287 demands of every feed and entry."""
    root = fromstring(text, XMLParser(encoding="utf-8"))
    assert root.tag == f"{ATOM}feed"
    entries = root.findall(f"{ATOM}entry")
    for element in [root, *entries]:
        for name in ("id", "title", "updated"):
            (one,) = element.findall(ATOM + name)
            assert one.text, name
        assert datetime.fromisoformat(element.findtext(f"{ATOM}updated", "")).tzinfo
        assert re.fullmatch(r"urn:[a-z][a-z0-9-]{1,31}:[^\s<>]+", element.findtext(f"{ATOM}id", ""))
        assert [link.get("rel") for link in element.findall(f"{ATOM}link")].count("alternate") == 1
        assert all(str(link.get("href")).startswith("http") for link in element.findall(f"{ATOM}link"))
    for entry in entries:
        assert entry.findtext(f"{ATOM}author/{ATOM}name")
        (content,) = entry.findall(f"{ATOM}content")
        assert content.get("type") == "html"
        assert len(content) == 0, "the HTML is escaped text, not elements of the feed"
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(ids) == len(set(ids))
    updates = [entry.findtext(f"{ATOM}updated", "") for entry in entries]
    assert not updates or root.findtext(f"{ATOM}updated") == max(updates)
    return root


class Runs(HTMLParser):
    """Collects what a reader of the feed must never be given."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        bad = [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]
        self.found += [*bad, *([tag] if tag in ("script", "img", "iframe", "style") else [])]


@pytest.mark.parametrize("path", FEEDS)
def test_an_empty_feed_is_valid(api: Api, ann: dict[str, str], path: str) -> None:
    answer = api.client.get(path)
    assert answer.headers["content-type"].startswith("application/atom+xml")
    assert read(answer.text).findall(f"{ATOM}entry") == []


def test_hostile_texts_stay_texts(api: Api, ann: dict[str, str]) -> None:
    name = say(api, ann, HOSTILE)
    for path in ("/feeds/board.atom", "/feeds/agents/ant.atom"):
        (entry,) = read(api.client.get(path).text).findall(f"{ATOM}entry")
        assert "<script>" in entry.findtext(f"{ATOM}title", "")  # as text, which a reader shows as it is
        runs = Runs()
        runs.feed(entry.findtext(f"{ATOM}content", ""))
        assert runs.found == []
        assert entry.findtext(f"{ATOM}id") == f"urn:paddock:race:tiny:message_board:{name}"
    assert api.client.get("/feeds/agents/nobody.atom").status_code == 404


def test_who_holds_the_feed_is_answered_304_until_it_changes(api: Api, ann: dict[str, str]) -> None:
    say(api, ann, "One.")
    first = api.client.get("/feeds/board.atom")
    tag, moment = first.headers["etag"], first.headers["last-modified"]
    assert api.client.get("/feeds/board.atom", headers={"If-None-Match": tag}).status_code == 304
    assert api.client.get("/feeds/board.atom", headers={"If-None-Match": f'"x", W/{tag}'}).status_code == 304
    assert api.client.get("/feeds/board.atom", headers={"If-Modified-Since": moment}).status_code == 304
    assert api.client.get("/feeds/board.atom", headers={"If-Modified-Since": "yesterday"}).status_code == 200
    both = {"If-None-Match": '"x"', "If-Modified-Since": moment}
    assert api.client.get("/feeds/board.atom", headers=both).status_code == 200
    api.site.clock.forward(seconds=2)  # type: ignore[attr-defined]  # the held clock
    say(api, ann, "Two.")
    for header, value in (("If-None-Match", tag), ("If-Modified-Since", moment)):
        again = api.client.get("/feeds/board.atom", headers={header: value})
        assert (again.status_code, len(read(again.text).findall(f"{ATOM}entry"))) == (200, 2)


@pytest.mark.parametrize(
    "since", ["x", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "Mon, 01 Jan 2024 00:00:00 +9999"]
)
def test_a_date_that_is_none_counts_as_absent(api: Api, ann: dict[str, str], since: str) -> None:
    assert api.client.get("/feeds/board.atom", headers={"If-Modified-Since": since}).status_code == 200


def test_a_retraction_updates_the_entry_and_its_id_stays(api: Api, ann: dict[str, str]) -> None:
    name = say(api, ann, "A slip of the tongue.")
    before = api.client.get("/feeds/board.atom")
    api.site.clock.forward(hours=1)  # type: ignore[attr-defined]
    api.client.post(f"/v1/messages/{name}:retract", headers=ann, json={"reason": "Oops."})
    after = api.client.get("/feeds/board.atom", headers={"If-Modified-Since": before.headers["last-modified"]})
    (old,), (new,) = (read(answer.text).findall(f"{ATOM}entry") for answer in (before, after))
    assert old.findtext(f"{ATOM}id") == new.findtext(f"{ATOM}id")
    assert new.findtext(f"{ATOM}updated") == "2026-11-29T13:00:00.000Z"
    assert "slip" not in after.text


def test_pages_name_their_feeds(api: Api, ann: dict[str, str]) -> None:
    assert 'type="application/atom+xml" title="Board" href="/feeds/board.atom"' in api.client.get("/").text
    assert 'href="/feeds/agents/ant.atom"' in api.client.get("/agents/ant").text
