"""Every page, empty and full, as a browser gets it."""

import re
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from board.rows import PostRow, ResultRow
from runner.rows import JobRow
from storage.database import reading, writing
from storage.site import Site
from tests.web.pages.conftest import make_app
from tests.web.pages.race import Race
from tests.web.pages.reading import Page
from web.pages.evidence import posted_facts
from web.pages.frame import POLICY
from web.pages.job import stages_of
from web.pages.threads import SHOWN

EMPTY = ("/", "/leaderboard", "/leaderboard?view=all", "/leaderboard?view=raw", "/agents", "/queue")
EMPTY += ("/moderation", "/search", "/taskforces", "/stats")


def paths(site: Site) -> list[str]:
    """List the address of every page there is."""
    with reading(site.engine) as session:
        posts = [row for row in session.exec(select(PostRow)) if row.folder in SHOWN]
        threads = [f"/t/{row.filename}" for row in posts if row.thread == row.filename]
        results = [f"/r/{row.filename}" for row in session.exec(select(ResultRow))]
    jobs = [f"/jobs/job_{number:04d}" for number in range(1, 9)]
    return [*EMPTY, "/agents/red-kettle", "/agents/late-train", *threads, *results, *jobs]


def result_of(session: Session, agent: str, state: str) -> str:
    return session.exec(
        select(ResultRow.filename).where(ResultRow.agent == agent, ResultRow.verification == state)
    ).one()


@pytest.mark.parametrize("path", EMPTY)
def test_an_empty_page_says_what_to_do(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert 'class="empty"' in answer.text
    assert "/#join" in Page(answer.text).links


def test_every_page_is_whole_and_holds_nothing_that_runs(client: TestClient, full: Site) -> None:
    for path in paths(full):
        answer = client.get(path)
        page = Page(answer.text)
        assert answer.status_code == 200, path
        assert page.faults == [], path
        assert len(page.ids) == len(set(page.ids)), f"an id stands twice in {path}"
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "HX-Request" in answer.headers["vary"]
        assert answer.text.rstrip().endswith("</html>")


def test_every_link_of_ours_leads_somewhere(client: TestClient, full: Site) -> None:
    links = {link.split("#")[0] for path in paths(full) for link in Page(client.get(path).text).links}
    elsewhere = ("/v1", "/buckets/")
    for link in sorted(link for link in links if link.startswith("/") and not link.startswith(elsewhere)):
        assert client.get(link).status_code == 200, link


def test_links_to_an_anchor_of_the_page_find_it(client: TestClient, full: Site) -> None:
    for path in paths(full):
        page = Page(client.get(path).text)
        anchors = {link[1:] for link in page.links if link.startswith("#")}
        assert anchors <= set(page.ids), path


def test_the_session_strip_counts_what_runs_and_waits(client: TestClient, full: Site) -> None:
    text = Page(client.get("/agents").text).text
    assert "2 running · 3 queued" in text
    assert "3 verified" in text
    assert "A tiny race" in text


def test_the_leader_is_marked_and_those_level_with_it(client: TestClient, full: Site) -> None:
    html = client.get("/leaderboard").text
    rows = re.findall(r'<tr class="([^"]*)">\s*<td class="c-rank">.*?<span class="rank">([^<]+)', html, re.S)
    assert rows == [("is-record", "1–2"), ("is-level", "1–2"), ("", "3")]
    assert "Today nothing separates the first from the next one." in Page(html).text


def test_a_claim_never_has_a_place(client: TestClient, full: Site) -> None:
    waiting = client.get("/leaderboard?view=all").text
    assert waiting.index("w192-ctk48-noprecache-v3") < waiting.index("fw192-ctk49-noprecache-v1")
    row = waiting[waiting.index("<bdi>fw192-ctk49") - 300 : waiting.index("<bdi>fw192-ctk49")]
    assert 'aria-label="no place"' in row
    raw = client.get("/leaderboard?view=raw").text
    assert 'class="rank"' not in raw
    assert "is-record" not in raw


def test_an_invalid_result_is_folded_away_with_its_reason_and_both_numbers(client: TestClient, full: Site) -> None:
    html = client.get("/leaderboard").text
    fold = Page(html[html.index('<details id="invalid">') :]).text
    assert "over its cap" in fold
    assert "512.6" in fold
    assert "2.441" in fold


def test_a_result_page_shows_every_draw_the_failed_one_too(client: TestClient, full: Site, session: Session) -> None:
    filename = result_of(session, "red-kettle", "valid")
    answer = client.get(f"/r/{filename}")
    text = Page(answer.text).text
    assert "6 started, 5 measured" in text
    assert "not measured: WORKER_LOST" in text
    assert "overclaimed" in text
    assert "PPL cap" in text


def test_a_result_links_to_its_verdict_and_the_files_of_its_run(
    client: TestClient, full: Site, session: Session
) -> None:
    filename = result_of(session, "red-kettle", "valid")
    links = Page(client.get(f"/r/{filename}").text).links
    assert f"/buckets/race/tiny-main-bucket/resolve/verdicts/{filename[:-3]}/verdict.json" in links
    assert "/buckets/race/tiny-red-kettle/resolve/runs/1/summary.json" in links


def test_nothing_of_the_audit_bucket_or_a_private_one_is_shown(client: TestClient, full: Site) -> None:
    for path in paths(full):
        html = client.get(path).text
        assert "tiny-audit" not in html, path
        assert "SECRET" not in html, path
        assert "secret-stack" not in html, path
        if "/t/" not in path and "/r/" not in path:
            assert "submissions/late-train" not in html, path


def test_a_verification_draw_shows_only_that_it_runs(client: TestClient, full: Site) -> None:
    text = Page(client.get("/jobs/job_0005").text).text
    assert "verification, draw 1 of 5" in text
    assert "PRIVATE" not in text
    assert "Run files" not in text
    assert "Log" not in text


def test_a_failed_run_names_its_failure(client: TestClient, full: Site) -> None:
    text = Page(client.get("/jobs/job_0002").text).text
    assert "SERVER_EXITED The server ended before it was ready." in text
    with reading(full.engine) as session:
        stages = stages_of(session.get_one(JobRow, "job_0002"), now=full.clock())
    notes = {stage.name: stage.note for stage in stages}
    assert notes["Preparing"] == "44 s"
    assert notes["Measuring"] == ""  # its server's end took time, but nothing was measured


def test_a_failed_run_of_a_private_submission_shows_only_that_it_failed(client: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        site.buckets(session).create(site.scratch("shy"), owner="user-shy", private=True)
        Race(site, session).job(1, "shy", "failed", code="SHY_CODE", message="shy words", worker="shy-host:1")
    text = Page(client.get("/jobs/job_0001").text).text
    assert "Failed" in text
    assert all(word not in text for word in ("SHY_CODE", "shy words", "shy-host"))


def test_no_page_names_the_worker(client: TestClient, full: Site) -> None:
    assert "worker-1" not in client.get("/jobs/job_0002").text


def test_pages_use_the_address_of_the_client_unless_one_is_set(client: TestClient, full: Site) -> None:
    assert "http://race.example/v1" in client.get("/", headers={"host": "race.example"}).text
    named = replace(full, settings=full.settings.model_copy(update={"public_url": "https://set.example/"}))
    with TestClient(make_app(named), headers={"host": "race.example"}) as other:
        text = other.get("/").text
    assert "https://set.example/v1" in text
    assert "race.example" not in text


def test_a_result_page_hides_what_the_server_wrote_in_the_post() -> None:
    facts = posted_facts({"promoted_from": "hf://buckets/a/b/c.md", "promoted_digest": "0", "engine": "x"})
    assert facts == (("engine", "x"),)


def test_a_finished_run_shows_the_end_of_its_log_with_line_numbers(client: TestClient, full: Site) -> None:
    page = Page(client.get("/jobs/job_0001").text)
    assert "L261" in page.ids
    assert "L61" not in page.ids
    assert "61 earlier lines" in page.text
    assert 'class="err">error: bad reply' in page.html


def test_a_running_job_asks_again_and_a_finished_one_does_not(client: TestClient, full: Site) -> None:
    assert 'hx-trigger="every' in client.get("/jobs/job_0003").text
    assert 'hx-trigger="every' not in client.get("/jobs/job_0001").text


def test_new_posts_are_offered_and_move_nothing(client: TestClient, full: Site) -> None:
    first = client.get("/")
    with reading(full.engine) as session:
        oldest = session.exec(select(PostRow.filename).order_by(PostRow.filename)).first()
    later = client.get("/", params={"seen": oldest})
    assert 'class="fresh"' not in first.text
    assert "new posts</a>" in later.text


def test_a_reply_leads_to_its_place_in_the_thread(client: TestClient, full: Site) -> None:
    with reading(full.engine) as session:
        reply = next(row for row in session.exec(select(PostRow)) if row.thread != row.filename)
        thread, filename = reply.thread, reply.filename
    answer = client.get(f"/p/{filename[:-3]}", follow_redirects=True)
    assert answer.url.path == f"/t/{thread}"
    assert f'id="p-{filename[:-3]}"' in answer.text


def test_a_long_thread_has_pages_and_a_reply_leads_to_its_own(client: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        race = Race(site, session)
        root = race.post("low-sun", "A root")
        replies = [race.post("low-sun", f"Reply {number}", refs=root) for number in range(120)]
    first = client.get(f"/t/{root}")
    assert Page(first.text).text.count("Reply ") == 99 + 1  # the page's own "Reply" section has one more
    assert f"/t/{root}?after={replies[98]}" in Page(first.text).links
    last = client.get(f"/t/{replies[-1]}", follow_redirects=True)
    assert last.url.query.decode() == f"after={replies[98]}"
    assert f"p-{replies[-1][:-3]}" in Page(last.text).ids


def test_a_post_that_nobody_proved_says_so(client: TestClient, full: Site) -> None:
    with reading(full.engine) as session:
        root = next(row.filename for row in session.exec(select(PostRow)) if "n64 bridge" in row.body)
    assert "not proven" in client.get(f"/t/{root}").text


def test_the_raw_file_is_text_and_the_record_is_json(client: TestClient, full: Site) -> None:
    with reading(full.engine) as session:
        row = session.exec(select(PostRow)).first()
        assert row is not None
        filename, body, content = row.filename, row.body, row.content
    raw = client.get(f"/p/{filename}")
    record = client.get(f"/p/{filename[:-3]}.json")
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert raw.text == content
    head = {"agent": "red-kettle", "via": "raw"}
    written = {"filename": filename, "frontmatter": head, "body": body}
    assert record.json() == {**written, "proof": "bearer"}


@pytest.mark.parametrize(
    "path", ["/t/none.md", "/r/none.md", "/agents/nobody", "/jobs/job_9999", "/p/none", "/p/none.md"]
)
def test_what_is_not_there_is_a_page_that_leads_back(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "/" in Page(answer.text).links
    assert answer.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize(
    "query", ["before=%00", "before=%27%22%3E%3Cscript%3E", "seen=zzz", "before=0", "seen=" + "9" * 200]
)
def test_a_cursor_of_any_kind_is_no_error(client: TestClient, full: Site, query: str) -> None:
    answer = client.get(f"/?{query}")
    assert answer.status_code == 200
    assert Page(answer.text).faults == []


def test_an_unknown_view_is_the_verified_one(client: TestClient, full: Site) -> None:
    assert client.get("/leaderboard?view=nonsense").text == client.get("/leaderboard").text


def test_other_hardware_has_a_board_of_its_own(client: TestClient, full: Site, session: Session) -> None:
    row = session.exec(select(ResultRow).where(ResultRow.agent == "low-sun")).one()
    row.hardware = "H100"
    session.add(row)
    session.commit()
    assert "w192-ctk48-noprecache-v3" not in client.get("/leaderboard").text
    assert "w192-ctk48-noprecache-v3" in client.get("/leaderboard?hardware=H100").text


def test_a_page_that_has_not_changed_is_not_sent_again(client: TestClient, full: Site) -> None:
    tag = client.get("/leaderboard").headers["etag"]
    assert client.get("/leaderboard", headers={"if-none-match": tag}).status_code == 304
