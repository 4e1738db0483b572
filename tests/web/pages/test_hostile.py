"""What agents write is text, wherever it is shown."""

import time

from fastapi.testclient import TestClient
from sqlmodel import Session

from agents.rows import AgentRow
from storage.buckets import Put
from storage.database import writing
from storage.site import Site
from tests.web.pages.race import Race
from tests.web.pages.reading import Page

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>'
BODY = f"""# {EVIL}

[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) <javascript:alert(1)>
![d](javascript:alert(1)) <b onclick="x()">e</b> <style>*{{}}</style> <base href="//x">
<div hx-get="/v1" hx-trigger="load" hx-on:click="x()">f</div> <a href="vbscript:x">g</a> {EVIL}

```"><script>alert(1)</script>
</code></pre><script>alert(1)</script>
```

| <script> | {EVIL} |
|---|---|
| x | [y](javascript:1) |
"""


def _fill(site: Site, session: Session) -> list[str]:
    race = Race(site, session)
    store = site.buckets(session)
    store.create(site.scratch("evil"), owner=EVIL)
    words = dict.fromkeys(("hf_user", "model", "harness", "joined"), EVIL)
    bucket = str(site.scratch("evil"))
    session.add(
        AgentRow(agent_id="evil", tools=[EVIL], agent_bucket=bucket, bio=BODY, content_digest="0" * 64, **words)
    )
    root = race.post("evil", BODY, title=EVIL, proof=EVIL)
    race.post("evil", BODY, refs=root)
    result = race.result("evil", EVIL, 10.0, 2.0, description=EVIL, reason=EVIL, hardware=EVIL)
    other = race.result("evil", "javascript:alert(1)", 11.0, 2.0, submission="javascript:alert(1)")
    good = race.result("evil", EVIL, 12.0, 2.0)
    job = race.job(1, "evil", "failed", code=EVIL, message=EVIL, worker=EVIL, hardware=EVIL)
    job.submission_prefix = f"submissions/evil/{EVIL}"
    names = ('"><script>alert(1)<', "javascript:alert(1)", "a b#?.json", "job_logs.txt")
    files = [Put(f"runs/1/{name}", EVIL.encode()) for name in names]
    store.apply(site.scratch("evil"), files)
    results = [f"/r/{name}" for name in (result, other, good)]
    return [
        "/",
        f"/t/{root}",
        *results,
        "/leaderboard?view=raw",
        "/leaderboard",
        "/agents",
        "/agents/evil",
        "/queue",
        "/jobs/job_0001",
    ]


def test_no_page_runs_what_an_agent_wrote(client: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        paths = _fill(site, session)
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        page = Page(answer.text)
        assert page.faults == [], path
        assert "<img src=x" not in answer.text


def test_the_hostile_text_is_shown_as_the_text_it_is(client: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        _fill(site, session)
    assert "<script>alert(1)</script>" in Page(client.get("/agents").text).text


def test_a_failure_repeats_nothing_as_markup(client: TestClient) -> None:
    answer = client.get("/agents/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert answer.status_code == 404
    assert Page(answer.text).faults == []


def test_a_raw_post_is_never_a_page(client: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        root = Race(site, session).post("evil", BODY)
    answer = client.get(f"/p/{root}")
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_long_hostile_markdown_does_not_hold_a_page_up(client: TestClient, site: Site) -> None:
    with writing(site.engine) as session:
        race = Race(site, session)
        root = race.post("evil", "![" * 100_000)
        for _ in range(30):
            race.post("evil", "[a][" * 50_000, refs=root)
            race.post("evil", "![" * 100_000)
    for path in ("/", f"/t/{root}"):
        began_s = time.process_time()
        assert client.get(path).status_code == 200
        assert time.process_time() - began_s < 8  # it was a minute and more
    assert "The rest is in the raw file." in client.get(f"/t/{root}").text
