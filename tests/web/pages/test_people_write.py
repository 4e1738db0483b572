"""What signed-in people do on pages, each by a plain form: post, reply, take back, hide, broadcast, cancel, read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlmodel import select

from agents import accounts, audit, tokens
from agents.audit import AuditQuery
from agents.roles import Role
from agents.tokens import Caller
from board import taskforces, taskforces_adding
from board.rows import PostRow
from runner.rows import JobRow
from storage.database import reading, writing
from storage.site import Site
from tests.people import add_agent, add_files, add_person
from tests.web.browser import Browser
from tests.web.pages.race import Race
from tests.web.pages.reading import Page
from web.app import create_app

WORDS = "# A question\n\nDoes **it** work, @blue-heron? <script>alert(1)</script>"


@dataclass
class House:
    """A site with an agent of Ada's, and one browser for whoever is signed in."""

    browser: Browser
    site: Site

    def enter(self, name: str, role: Role = Role.PERSON) -> None:
        with writing(self.site.engine) as session:
            accounts.add(session, name, role=role, now=self.site.clock())
            token = tokens.issue(session, name, secret=self.site.secret, now=self.site.clock())
        self.browser.client.cookies.clear()
        assert self.browser.sign_in(token).status_code == 303

    def post(self, body: str = WORDS, **fields: str) -> str:
        """Post as whoever is signed in, and name the post."""
        answer = self.browser.form("/post", body=body, **fields)
        assert answer.status_code == 303, Page(answer.text).text
        return answer.headers["location"].partition("#")[0].removeprefix("/t/")

    def act(self, verb: str, name: str, reason: str) -> Response:
        """Take a message away or bring it back, as whoever is signed in."""
        return self.browser.form(f"/moderation/{verb}", target=f"message_board/{name}", reason=reason)

    def rows(self) -> list[PostRow]:
        with reading(self.site.engine) as session:
            return list(session.exec(select(PostRow).order_by(PostRow.filename)))

    def deeds(self) -> list[tuple[str, str]]:
        with reading(self.site.engine) as session:
            return [(row.actor, row.action) for row in audit.find(session, AuditQuery(limit=0)).rows]


@pytest.fixture
def house(site: Site) -> Iterator[House]:
    with writing(site.engine) as session:
        add_agent(site, session, "blue-heron", add_person(site, session, "ada"))
    with TestClient(create_app(site), headers={"accept": "text/html"}, follow_redirects=False) as client:
        yield House(Browser(client, site), site)


def test_a_preview_shows_the_text_and_posts_nothing(house: House) -> None:
    house.enter("ada")
    answer = house.browser.form("/post/preview", body=WORDS)
    assert answer.status_code == 200
    assert "<strong>it</strong>" in answer.text
    assert Page(answer.text).faults == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;</textarea>" in answer.text
    assert house.rows() == []


def test_a_post_stands_under_the_persons_handle_and_says_how_it_came(house: House) -> None:
    house.enter("ada")
    name = house.post(WORDS.replace("\n", "\r\n"))
    (row,) = house.rows()
    assert (row.filename, row.agent, row.via, row.type) == (name, "human-ada", "dashboard", "user")
    assert row.body.strip() == WORDS
    assert ("ada", "messages.post") in house.deeds()
    assert "on this site" in Page(house.browser.get(f"/t/{name}").text).text
    with reading(house.site.engine) as session:
        stored = house.site.buckets(session).read(house.site.central, f"message_board/{name}")
    assert b"via: dashboard" in stored


def test_a_reply_hangs_in_its_thread(house: House) -> None:
    house.enter("ada")
    root = house.post()
    house.enter("eve")
    page = house.browser.get(f"/t/{root}").text
    assert "Write a reply" in page
    preview = house.browser.form("/post/preview", body="It does.", refs=root)
    assert f'name="refs" value="{root}"' in preview.text
    reply = house.post("It does.", refs=root)
    assert {row.filename: row.thread for row in house.rows()} == {root: root, reply: root}
    house.browser.client.cookies.clear()
    assert "Write a reply" not in house.browser.get(f"/t/{root}").text


def test_what_is_refused_stays_in_the_form_and_leaves_nothing_behind(house: House) -> None:
    house.enter("ada")
    limit = house.site.challenge.limits.raw_posts_per_min
    for number in range(limit):
        house.post(f"Post {number}")
    answer = house.browser.form("/post", body="One too many")
    assert answer.status_code == 429
    assert "One too many</textarea>" in answer.text
    assert 'role="alert"' in answer.text
    assert len(house.rows()) == limit
    empty = house.browser.form("/post", body=" \n")
    assert (empty.status_code, len(house.rows())) == (400, limit)
    assert house.browser.form("/post", body="x", refs="none.md").status_code == 404


def test_only_an_organizer_broadcasts_and_it_reaches_every_inbox(house: House) -> None:
    house.enter("ada")
    assert 'name="broadcast"' not in house.browser.get("/post").text
    refused = house.browser.form("/post", body="Hear me", broadcast="true")
    assert refused.status_code == 403
    assert "Hear me</textarea>" in refused.text
    house.enter("olga", Role.ORGANIZER)
    assert 'name="broadcast"' in house.browser.get("/post").text
    house.post("Down at noon", broadcast="true")
    for handle in ("human-ada", "blue-heron"):
        assert "Down at noon" in Page(house.browser.get(f"/inbox/{handle}").text).text


def test_a_form_without_this_sessions_word_changes_nothing(house: House) -> None:
    house.enter("olga", Role.ORGANIZER)
    name = house.post()
    posts = ("/post", "/post/preview", "/moderation/retract", "/moderation/hide")
    for path in (*posts, "/inbox/human-olga", "/jobs/none/cancel"):
        fields = {"body": "x", "reason": "x", "read_to": name, "target": f"message_board/{name}"}
        assert house.browser.post(path, fields).status_code == 403, path
    assert [row.state for row in house.rows()] == [""]


def test_an_author_takes_back_own_posts_and_those_of_own_agents_alone(house: House) -> None:
    house.enter("ada")
    mine = house.post()
    with writing(house.site.engine) as session:
        theirs = Race(house.site, session).post("blue-heron", "From Ada's agent")
    for name in (mine, theirs):
        assert "Take back" in house.browser.get(f"/t/{name}").text
    house.enter("eve")
    assert "Take back" not in house.browser.get(f"/t/{mine}").text
    assert house.act("retract", mine, "Not mine").status_code == 403
    house.enter("ada")
    assert house.act("retract", mine, "  ").status_code == 422
    assert house.act("retract", mine, "I was wrong.").status_code == 303
    page = Page(house.browser.get(f"/t/{mine}").text)
    assert "Retracted by its author: I was wrong." in page.text
    assert "Does it work" not in page.text
    assert "Take back" not in page.text
    assert "I was wrong." in Page(house.browser.get("/moderation").text).text
    assert ("ada", "moderation.retract") in house.deeds()


def test_an_organizer_hides_a_post_and_brings_it_back(house: House) -> None:
    house.enter("ada")
    name = house.post()
    assert house.act("hide", name, "x").status_code == 403
    house.enter("olga", Role.ORGANIZER)
    assert house.act("hide", name, "Spam.").status_code == 303
    hidden = house.browser.get(f"/t/{name}").text
    assert "Does <strong>it</strong>" not in hidden
    assert "Bring back" in hidden
    assert house.act("unhide", name, "It was none.").status_code == 303
    assert "Does <strong>it</strong>" in house.browser.get(f"/t/{name}").text
    assert [deed for deed in house.deeds() if deed[0] == "olga"][:2] == [
        ("olga", "moderation.unhide"),
        ("olga", "moderation.hide"),
    ]


def test_a_run_is_cancelled_by_its_owner_or_an_organizer(house: House) -> None:
    with writing(house.site.engine) as session:
        race = Race(house.site, session)
        for number, state in ((1, "queued"), (2, "measuring"), (3, "queued")):
            race.job(number, "blue-heron", state, user="ada")
        draw = race.job(4, "blue-heron", "queued", kind="draw")
        assert draw.kind == "draw"
    house.enter("eve")
    assert "Cancel this run" not in house.browser.get("/jobs/job_0001").text
    assert house.browser.form("/jobs/job_0001/cancel").status_code == 403
    house.enter("ada")
    assert "Cancel this run" in house.browser.get("/jobs/job_0001").text
    assert house.browser.form("/jobs/job_0001/cancel").status_code == 303
    assert "Cancel this run" not in house.browser.get("/jobs/job_0001").text
    house.enter("boss", Role.OPERATOR)
    for name in ("job_0002", "job_0003"):
        assert house.browser.form(f"/jobs/{name}/cancel").status_code == 303
    assert "It is being stopped" in house.browser.get("/jobs/job_0002").text
    assert "Cancel this run" not in house.browser.get("/jobs/job_0004").text
    assert house.browser.form("/jobs/job_0004/cancel").status_code == 403
    with reading(house.site.engine) as session:
        ends = {row.id: (row.state, row.cancel_requested) for row in session.exec(select(JobRow))}
    assert ends["job_0001"][0] == ends["job_0003"][0] == "cancelled"
    assert ends["job_0002"] == ("measuring", True)
    assert ends["job_0004"] == ("queued", False)


def test_an_inbox_is_marked_read_by_the_button_alone_and_only_as_far_as_it_was_shown(house: House) -> None:
    house.enter("eve")
    house.post("First for @human-ada")
    assert "Mark all as read" not in house.browser.get("/inbox/human-ada").text
    house.enter("ada")
    assert house.browser.get("/inbox").headers["location"] == "/inbox/human-ada"
    for _ in range(2):
        page = house.browser.get("/inbox/human-ada").text
        assert "1 unread" in Page(page).text
    newest = re.search(r'name="read_to" value="([^"]+)"', page)
    assert newest
    house.enter("eve")
    house.post("Second for @human-ada")
    assert house.browser.form("/inbox/human-ada", read_to=newest[1]).status_code == 403
    house.enter("ada")
    assert house.browser.form("/inbox/human-ada", read_to=newest[1]).status_code == 303
    text = Page(house.browser.get("/inbox/human-ada").text).text
    assert "1 unread" in text
    assert text.index("Second for") < text.index("Unread ·") < text.index("First for")
    assert house.browser.get("/inbox/nobody").status_code == 404


def test_an_organizer_hides_what_a_taskforce_holds_on_the_pages_that_show_it(house: House) -> None:
    with writing(house.site.engine) as session:
        ada = Caller("ada", "tok_1")
        taskforces.open_raw(house.site, session, ada, "int4", "blue-heron", "A plan.")
        note = taskforces_adding.add_note_raw(house.site, session, ada, "int4", "blue-heron", "A bad note.").path
        add_files(house.site, session, "blue-heron", {"f.csv": "a bad line"})
        source = f"{house.site.scratch('blue-heron').uri}/f.csv"
        file = taskforces_adding.add_file(house.site, session, ada, "int4", source, "f_blue-heron.csv").path
    tree = f"/buckets/{house.site.central}/tree"
    shown = (("/taskforces/int4", note, "A bad note."), (f"{tree}/{file}", file, "a bad line"))
    house.enter("ada")
    assert "Take back" in house.browser.get("/taskforces/int4").text
    assert not [url for url, _, _ in shown if "Hide it" in house.browser.get(url).text]
    house.enter("olga", Role.ORGANIZER)
    for url, path, text in shown:
        before = house.browser.get(url).text
        assert text in before
        assert f'name="target" value="{path}"' in before
        answer = house.browser.form("/moderation/hide", target=path, reason="Spam.")
        assert answer.headers["location"].partition("#")[0] == url
        page = Page(house.browser.get(url).text)
        assert "Hidden by an organizer: Spam." in page.text
        assert text not in page.text
        assert "Bring it back" in page.text
    log = house.browser.get("/moderation").text
    for url, _, _ in shown:
        assert f'href="{url}' in log
    readme = f"{tree}/taskforces/int4/README.md"
    assert house.browser.form("/moderation/hide", target="taskforces/int4/README.md", reason="Ads.").status_code == 303
    assert "Hidden by an organizer: Ads." in Page(house.browser.get("/taskforces/int4").text).text
    assert "A plan." not in house.browser.get("/taskforces/int4").text
    assert "Bring it back" in house.browser.get(readme).text
    assert "hidden" in house.browser.get("/taskforces/int4").text.partition("f_blue-heron.csv")[2][:80]
