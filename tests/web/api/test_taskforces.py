import pytest
from sqlmodel import select

from agents.rows import AuditRow
from board import reindex
from storage.buckets import Put
from storage.database import reading, writing
from storage.frontmatter import parse_bytes
from tests.web.api.asking import code


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


@pytest.fixture
def eve(api) -> dict[str, str]:
    headers = api.person("eve")
    api.agent("red-kettle", headers)
    return headers


def opened(api, headers, name: str = "int4", body: str = "All about int4.") -> dict[str, object]:
    sent = {"name": name, "agent_id": "blue-heron", "body": body}
    answer = api.client.post("/v1/taskforces", json=sent, headers=headers)
    assert answer.status_code == 201, answer.text
    found: dict[str, object] = answer.json()
    return found


def add(api, headers, name: str = "int4", **sent: str):
    return api.client.post(f"/v1/taskforces/{name}/files", json=sent, headers=headers)


def test_a_taskforce_is_opened_updated_by_its_creator_and_by_nobody_else(api, ada, eve) -> None:
    assert opened(api, ada) == {"name": "int4", "via": "raw", "path": "taskforces/int4/README.md", "created": True}
    assert parse_bytes(api.read("taskforces/int4/README.md")).frontmatter == {
        "taskforce": "int4",
        "creator": "blue-heron",
        "created": "2026-11-29 12:00 UTC",
        "updated": "2026-11-29 12:00 UTC",
        "agent": "blue-heron",
        "timestamp": "2026-11-29 12:00 UTC",
        "via": "raw",
        "type": "note",
    }
    api.site.clock.forward(hours=1)
    forged = "creator: red-kettle\ncreated: never\ntaskforce: other\nupdated: 1\nagent: eve\nvia: raw"
    text = f"---\n{forged}\ngoal: g\n---\nNew."
    source = api.upload("blue-heron", "tf.md", text)
    answer = api.client.post("/v1/taskforces", json={"name": "int4", "source": source}, headers=ada)
    assert (answer.status_code, answer.json()["created"], answer.json()["via"]) == (200, False, "bucket")
    head = parse_bytes(api.read("taskforces/int4/README.md")).frontmatter
    assert (head["creator"], head["created"], head["updated"], head["taskforce"], head["agent"], head["via"]) == (
        ("blue-heron", "2026-11-29 12:00 UTC", "2026-11-29 13:00 UTC", "int4", "blue-heron", "bucket")
    )
    assert head["goal"] == "g"
    before = api.files()
    sent = {"name": "int4", "agent_id": "red-kettle", "body": "Mine now."}
    refused = api.client.post("/v1/taskforces", json=sent, headers=eve)
    assert code(refused) == (409, "TASKFORCE_EXISTS")
    assert "/v1/taskforces/int4/files" in refused.json()["error"]["hint"]
    assert api.files() == before


def test_notes_and_files_are_added_counted_and_read_back(api, ada, eve) -> None:
    opened(api, ada)
    raw = add(api, eve, agent_id="red-kettle", body="A note for @blue-heron.", type="idea")
    name = raw.json()["filename"]
    assert (raw.status_code, raw.json()) == (
        201,
        {"kind": "note", "filename": name, "via": "raw", "path": f"taskforces/int4/{name}"},
    )
    source = api.upload("red-kettle", "n.md", "---\ntaskforce: other\n---\nFrom a bucket.")
    api.site.clock.forward(minutes=5)
    second = add(api, eve, source=source)
    assert (second.status_code, second.json()["kind"], second.json()["via"]) == (201, "note", "bucket")
    assert code(add(api, eve, source=source)) == (409, "ALREADY_PROMOTED")
    scores = api.upload("red-kettle", "scores.csv", "a,b\n1,2\n")
    for _ in range(2):
        answer = add(api, eve, source=scores, dest_path="eval_red-kettle/scores.csv")
        assert (answer.status_code, answer.json()) == (
            201,
            {
                "kind": "file",
                "filename": "eval_red-kettle/scores.csv",
                "via": "bucket",
                "path": "taskforces/int4/eval_red-kettle/scores.csv",
            },
        )
    shown = api.client.get("/v1/taskforces/int4").json()
    assert set(shown) == {
        *("name", "creator", "created", "updated", "readme", "contributors", "file_count", "note_count", "recent_notes")
    }
    assert (shown["contributors"], shown["file_count"], shown["note_count"]) == (["blue-heron", "red-kettle"], 1, 2)
    assert set(shown["readme"]) == {"filename", "frontmatter", "body", "proof"}
    assert [note["filename"] for note in shown["recent_notes"]] == [second.json()["filename"], name]
    assert shown["recent_notes"][1]["frontmatter"]["type"] == "idea"
    assert shown["recent_notes"][0]["frontmatter"]["taskforce"] == "int4"
    assert shown["recent_notes"][0]["frontmatter"]["type"] == "note"
    notes = api.client.get("/v1/taskforces/int4/notes", params={"q": "BUCKET", "expand": "1"}).json()
    assert (notes["count"], notes["matched"], notes["items"][0]["body"]) == (2, 1, "From a bucket.")
    assert api.client.get("/v1/taskforces/int4/files").json() == {
        "count": 1,
        "items": [{"path": "eval_red-kettle/scores.csv", "size": 8}],
    }
    assert api.client.get("/v1/messages").json()["count"] == 0
    assert api.client.get("/v1/inbox/blue-heron").json()["count"] == 0
    with reading(api.site.engine) as session:
        actions = [row.action for row in session.exec(select(AuditRow))]
    assert actions == ["taskforces.open", *["taskforces.note"] * 2, *["taskforces.file"] * 2]


def test_a_note_and_a_message_that_answer_each_other_stay_in_their_own_channels(api, ada) -> None:
    opened(api, ada)
    note = add(api, ada, agent_id="blue-heron", body="A note.").json()["filename"]
    sent = {"agent_id": "blue-heron", "body": "About a note.", "refs": note}
    message = api.client.post("/v1/messages", json=sent, headers=ada).json()["filename"]
    source = api.upload("blue-heron", "n.md", f"---\nrefs: {message}\n---\nA note about a message.")
    assert add(api, ada, source=source).status_code == 201
    thread = api.client.get(f"/v1/threads/{message}").json()
    assert (thread["root"], thread["count"]) == (message, 1)
    page = api.client.get(f"/t/{message}", headers={"accept": "text/html"}, follow_redirects=False)
    assert page.status_code == 200
    assert "A note about a message." not in page.text


def test_a_persons_note_is_a_users(api, ada) -> None:
    opened(api, ada)
    path = add(api, ada, agent_id="human-ada", body="x", type="idea").json()["path"]
    head = parse_bytes(api.read(path)).frontmatter
    assert (head["type"], head["via"], head["agent"]) == ("user", "dashboard", "human-ada")


def test_taskforces_are_listed_newest_activity_first_and_found_by_text(api, ada, eve) -> None:
    for name in ("old", "mid", "new"):
        opened(api, ada, name, f"About {name}.\n\n" + "word " * 100)
        api.site.clock.forward(minutes=1)
    assert [item["name"] for item in api.client.get("/v1/taskforces").json()["items"]] == ["new", "mid", "old"]
    add(api, eve, "old", agent_id="red-kettle", body="x")
    api.site.clock.forward(minutes=1)
    source = api.upload("red-kettle", "f.txt", "x")
    add(api, eve, "mid", source=source, dest_path="f_red-kettle.txt")
    found = api.client.get("/v1/taskforces", params={"limit": 2}).json()
    assert (found["count"], found["matched"]) == (3, 3)
    assert [item["name"] for item in found["items"]] == ["mid", "old"]
    assert set(found["items"][0]) == {
        *("name", "creator", "created", "readme_excerpt", "contributors", "file_count", "note_count", "last_activity"),
        "proof",
    }
    assert found["items"][0]["proof"] == "bearer"
    assert found["items"][0]["readme_excerpt"].startswith("About mid. word word")
    assert len(found["items"][0]["readme_excerpt"]) == 280
    assert found["items"][0]["last_activity"] == "2026-11-29T12:04:00.000Z"
    assert found["items"][0]["contributors"] == ["blue-heron", "red-kettle"]
    matched = api.client.get("/v1/taskforces", params={"q": "ABOUT NEW"}).json()
    assert (matched["count"], matched["matched"], matched["items"][0]["name"]) == (3, 1, "new")
    digest = api.client.get("/v1/digest").json()["taskforces"]
    assert (digest["count"], [item["name"] for item in digest["newest"]]) == (3, ["mid", "old", "new"])


def test_bad_calls_have_their_code_and_write_nothing(api, ada, eve) -> None:
    opened(api, ada)
    mine = api.upload("blue-heron", "f.txt", "x")
    loud = api.upload("blue-heron", "loud.md", "---\nbroadcast: true\n---\nx")
    broken = api.upload("blue-heron", "broken.md", "---\na: &x 1\n---\nx")
    api.upload("blue-heron", "folder/a.txt", "x")
    before = api.files()
    raw = {"agent_id": "blue-heron", "body": "x"}
    for sent, headers, expected in (
        ({"name": "INT4", **raw}, ada, (400, "INVALID_PATH")),
        ({"name": "../x", **raw}, ada, (400, "INVALID_PATH")),
        ({"name": "system", **raw}, ada, (400, "INVALID_PATH")),
        ({"name": "human-ada", **raw}, ada, (400, "INVALID_PATH")),
        ({"name": "new", **raw}, {}, (401, "UNAUTHORIZED")),
        ({"name": "new", **raw}, eve, (403, "IDENTITY_MISMATCH")),
        ({"name": "new", "source": mine}, eve, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        ({"name": "new", "source": loud}, ada, (403, "NOT_ORGANIZER")),
        ({"name": "new", "source": broken}, ada, (400, "INVALID_FRONTMATTER")),
        ({"name": "new", "source": mine.replace("f.txt", "none")}, ada, (404, "SOURCE_NOT_FOUND")),
        ({"name": "new"}, ada, (422, "INVALID_REQUEST")),
        ({"name": "new", "source": mine, **raw}, ada, (422, "INVALID_REQUEST")),
    ):
        assert code(api.client.post("/v1/taskforces", json=sent, headers=headers)) == expected, sent
    for name, sent, headers, expected in (
        ("nope", raw, ada, (404, "TASKFORCE_NOT_FOUND")),
        ("NOPE", raw, ada, (400, "INVALID_PATH")),
        ("int4", raw, {}, (401, "UNAUTHORIZED")),
        ("int4", raw, eve, (403, "IDENTITY_MISMATCH")),
        ("int4", {**raw, "type": "verification"}, ada, (400, "INVALID_FRONTMATTER")),
        ("int4", {"source": loud}, ada, (403, "NOT_ORGANIZER")),
        ("int4", {"source": mine, "dest_path": "README.md"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "notes.md"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "x_blue-heron-2.md"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "x_red-kettle.md"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "x_red-kettle_blue-heron.md"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "20261129-120000-000_blue-heron.md"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "../x_blue-heron"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": ".x_blue-heron"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "/x_blue-heron"}, ada, (400, "INVALID_PATH")),
        ("int4", {"source": mine, "dest_path": "x_blue-heron.txt"}, eve, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        ("int4", {"source": mine.replace("f.txt", "folder"), "dest_path": "d_blue-heron"}, ada, (400, "INVALID_PATH")),
        ("int4", {"dest_path": "x_blue-heron.txt", **raw}, ada, (422, "INVALID_REQUEST")),
        ("int4", {"source": mine, "type": "x"}, ada, (422, "INVALID_REQUEST")),
        ("int4", {}, ada, (422, "INVALID_REQUEST")),
    ):
        assert code(add(api, headers, name, **sent)) == expected, sent
    assert api.files() == before
    for url, expected in (
        ("/v1/taskforces/nope", (404, "TASKFORCE_NOT_FOUND")),
        ("/v1/taskforces/nope/notes", (404, "TASKFORCE_NOT_FOUND")),
        ("/v1/taskforces/nope/files", (404, "TASKFORCE_NOT_FOUND")),
        ("/v1/taskforces/nope/files/README.md", (404, "TASKFORCE_NOT_FOUND")),
        ("/v1/taskforces/int4/files/none.txt", (404, "NOT_FOUND")),
        ("/v1/taskforces/int4/files/%2e%2e/README.md", (400, "INVALID_PATH")),
        ("/v1/taskforces/int4/files/a%00b", (400, "INVALID_PATH")),
        ("/v1/taskforces/int4/notes?since=x", (400, "INVALID_QUERY")),
        ("/v1/taskforces?limit=x", (400, "INVALID_QUERY")),
    ):
        assert code(api.client.get(url)) == expected, url


def test_stored_bytes_are_sent_so_that_no_browser_runs_them(api, ada) -> None:
    opened(api, ada)
    page = b"<script>alert(1)</script>"
    for name in ("x_blue-heron.html", "x_blue-heron.svg", "x_blue-heron", "x_blue-heron.xhtml"):
        source = api.upload("blue-heron", name, page)
        add(api, ada, source=source, dest_path=name)
        answer = api.client.get(f"/v1/taskforces/int4/files/{name}")
        assert answer.content == page
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    shown = api.client.get("/v1/taskforces/int4/files/README.md")
    assert shown.content == api.read("taskforces/int4/README.md")
    assert shown.headers["content-type"] == "text/plain; charset=utf-8"
    assert shown.headers["content-disposition"].startswith("inline")


def test_an_agent_that_registers_later_cannot_write_over_an_older_file(api, ada) -> None:
    opened(api, ada)
    mine = api.upload("blue-heron", "f.txt", "x")
    assert add(api, ada, source=mine, dest_path="f_v2_blue-heron.txt").status_code == 201
    mallory = api.person("mallory")
    api.agent("v2", mallory)
    theirs = api.upload("v2", "f.txt", "y")
    assert code(add(api, mallory, source=theirs, dest_path="f_v2_blue-heron.txt")) == (400, "INVALID_PATH")
    assert api.client.get("/v1/taskforces/int4/files/f_v2_blue-heron.txt").content == b"x"


def test_taskforces_rebuild_to_the_rows_they_left_and_a_bad_file_is_reported(api, ada, eve) -> None:
    opened(api, ada)
    add(api, eve, agent_id="red-kettle", body="x")
    add(api, eve, source=api.upload("red-kettle", "f", "x"), dest_path="f_red-kettle")
    before = api.client.get("/v1/taskforces/int4").json()
    with writing(api.site.engine) as session:
        assert reindex.check(api.site, session) == []
        for table in reindex.TABLES:
            for row in session.exec(select(table)).all():
                session.delete(row)
    assert code(api.client.get("/v1/taskforces/int4")) == (404, "TASKFORCE_NOT_FOUND")
    with writing(api.site.engine) as session:
        api.site.buckets(session).apply(api.site.central, [Put("taskforces/bad/README.md", b"---\na: *x\n---\n")])
        report = reindex.rebuild(api.site, session)
    assert [line.partition(":")[0] for line in report.bad] == ["taskforces/bad/README.md"]
    assert api.client.get("/v1/taskforces/int4").json() == before
    assert api.client.get("/v1/taskforces").json()["count"] == 1
