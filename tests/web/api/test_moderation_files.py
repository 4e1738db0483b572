"""Hiding what is no message: a taskforce's notes, files and README, artifacts, shared resources, traces, bios."""

from collections.abc import Callable

import pytest
from httpx import Response
from sqlmodel import select

from board import reindex
from board.rows import ModerationRow, PostRow
from storage.buckets import Put
from storage.database import reading, writing
from tests.web.api.asking import code
from tests.web.api.conftest import Api

SECRET = "hunter2-albatross"
Headers = dict[str, str]


@pytest.fixture
def ann(api: Api) -> Headers:
    """The owner of `ant`, who opened the taskforce `int4`."""
    headers = api.person("ann")
    api.agent("ant", headers)
    sent = {"name": "int4", "agent_id": "ant", "body": "All about int4."}
    assert api.client.post("/v1/taskforces", json=sent, headers=headers).status_code == 201
    return headers


@pytest.fixture
def oda(api: Api) -> Headers:
    return api.person("oda", is_organizer=True)


def note(api: Api, ann: Headers) -> str:
    sent = {"agent_id": "ant", "body": SECRET}
    return str(api.client.post("/v1/taskforces/int4/files", json=sent, headers=ann).json()["path"])


def share(api: Api, ann: Headers) -> Response:
    source = api.upload("ant", "scores.csv", f"{SECRET},1\n")
    sent = {"source": source, "dest_path": "eval_ant/scores.csv"}
    return api.client.post("/v1/taskforces/int4/files", json=sent, headers=ann)


def named_file(api: Api, ann: Headers) -> str:
    return str(share(api, ann).json()["path"])


def rewrite(api: Api, ann: Headers) -> Response:
    sent = {"name": "int4", "agent_id": "ant", "body": f"# About {SECRET}\n\nThe first words: {SECRET}."}
    return api.client.post("/v1/taskforces", json=sent, headers=ann)


def readme(api: Api, ann: Headers) -> str:
    return str(rewrite(api, ann).json()["path"])


def sync(api: Api, ann: Headers, what: str = "artifacts") -> Response:
    source = api.upload("ant", "a/b.txt", SECRET).removesuffix("b.txt")
    if what == "artifacts":
        return api.client.post("/v1/artifacts:sync", json={"source": source, "dest_slug": "plots"}, headers=ann)
    sent = {"source": source, "dest_path": "plots_ant"}
    return api.client.post("/v1/shared-resources:sync", json=sent, headers=ann)


def artifact(api: Api, ann: Headers) -> str:
    return str(sync(api, ann).json()["files"][0]["dest_path"])


def shared(api: Api, ann: Headers) -> str:
    return str(sync(api, ann, "shared").json()["files"][0]["dest_path"])


def publish(api: Api, ann: Headers) -> Response:
    named = f"schema_version: {SECRET}\nharness: {SECRET}\nmodel: {SECRET}\nsession_id: s1\nnative_log_file: log.txt"
    api.upload("ant", "traces/s1/log.txt", SECRET)
    head = f"---\n{named}\nother: {SECRET}\ntokens: {{total: 7}}\ncost_usd: 0.5\n---\n{SECRET}"
    source = api.upload("ant", "traces/s1/manifest.md", head).removesuffix("manifest.md")
    return api.client.post("/v1/traces", json={"source": source, "share": "full"}, headers=ann)


def manifest(api: Api, ann: Headers) -> str:
    path = f"{publish(api, ann).json()['path']}manifest.md"
    with writing(api.site.engine) as session:  # the log beside it is another file
        api.site.buckets(session).apply(api.site.central, [Put("traces/ant/s1/log.txt", b"A log.")])
    return path


def trace_log(api: Api, ann: Headers) -> str:
    api.upload("ant", "traces/s1/log.txt", SECRET)
    head = "---\nschema_version: 1\nharness: h\nsession_id: s1\nnative_log_file: log.txt\n---\nx"
    source = api.upload("ant", "traces/s1/manifest.md", head).removesuffix("manifest.md")
    sent = {"source": source, "share": "full"}
    return f"{api.client.post('/v1/traces', json=sent, headers=ann).json()['path']}log.txt"


def introduce(api: Api, ann: Headers) -> Response:
    bio = api.upload("ant", "bio.md", SECRET)
    said = {"agent_id": "ant", "model": SECRET, "harness": SECRET, "tools": [SECRET], "bio_source": bio, "force": True}
    return api.client.post("/v1/agents/register", json=said, headers=ann)


def bio(api: Api, ann: Headers) -> str:
    return f"agents/{introduce(api, ann).json()['filename']}"


MAKERS = (note, named_file, readme, artifact, shared, manifest, trace_log, bio)


def act(api: Api, who: Headers, verb: str, target: str, reason: str = "Spam.") -> Response:
    return api.client.post(f"/v1/moderation:{verb}", json={"target": target, "reason": reason}, headers=who)


def places(api: Api, target: str) -> list[str]:
    """Name every read endpoint, page and stored file that says the secret."""
    path = target.removeprefix("taskforces/int4/")
    asked = [
        *("/v1/taskforces", "/v1/taskforces/int4", "/v1/taskforces/int4/notes?expand=1", "/v1/digest"),
        *("/taskforces", "/taskforces/int4", "/moderation", "/v1/moderation", "/feeds/board.atom"),
        f"/v1/taskforces/int4/notes?expand=1&q={SECRET}",
        f"/buckets/{api.site.central}/tree/{target}",
        f"/buckets/{api.site.central}/resolve/{target}",
        *([f"/v1/taskforces/int4/files/{path}"] if path != target else []),
        *("/v1/traces?expand=1", f"/v1/traces?q={SECRET}&expand=1", "/v1/stats", "/stats"),
        *("/v1/agents/ant", "/api/agents", "/agents", "/agents/ant", f"/v1/search?q={SECRET}"),
        *(["/v1/traces/ant/s1"] if target.startswith("traces/") else []),
    ]
    said = [(url, api.client.get(url, headers={"accept": "text/html"})) for url in asked]
    assert [url for url, answer in said if answer.status_code != 200] == []
    files = [(name, api.read(name).decode()) for name in api.files()]
    return [url for url, answer in said if SECRET in answer.text] + [name for name, text in files if SECRET in text]


def check_index(api: Api) -> None:
    with writing(api.site.engine) as session:
        assert reindex.check(api.site, session) == []


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_what_an_organizer_hides_is_read_nowhere_and_comes_back_whole(
    api: Api, ann: Headers, oda: Headers, make: Callable[[Api, Headers], str]
) -> None:
    target = make(api, ann)
    before, said = api.files(), places(api, target)
    assert f"/buckets/{api.site.central}/resolve/{target}" in said
    assert target in said
    answer = act(api, oda, "hide", target)
    assert answer.status_code == 200, answer.text
    assert places(api, target) == []
    assert "Spam." in api.read(target).decode()
    with reading(api.site.engine) as session:
        assert SECRET.encode() in api.site.buckets(session).read(api.site.audit, f"withheld/{target}")
    (line,) = api.client.get("/v1/moderation").json()["items"]
    assert (f"{line['folder']}/{line['target']}", line["by"], line["reason"]) == (target, "human-oda", "Spam.")
    check_index(api)
    assert code(act(api, oda, "hide", target)) == (409, "ALREADY_WITHDRAWN")
    assert act(api, oda, "unhide", target, "It was none.").status_code == 200
    assert {path: api.files()[path] for path in before} == before
    assert places(api, target) == said
    assert code(act(api, oda, "unhide", target)) == (409, "NOT_HIDDEN")
    check_index(api)


@pytest.mark.parametrize("make", [note, named_file, readme])
def test_hiding_again_after_an_act_that_broke_off_keeps_the_original(
    api: Api, ann: Headers, oda: Headers, make: Callable[[Api, Headers], str]
) -> None:
    """A Hub's files change at once; its rows are taken back here as a rollback does after the tombstone went out."""
    target = make(api, ann)
    before = api.files()
    assert act(api, oda, "hide", target).status_code == 200
    with writing(api.site.engine) as session:
        for row in session.exec(select(ModerationRow)):
            session.delete(row)
        for post in session.exec(select(PostRow).where(PostRow.filename == target.rpartition("/")[2])):
            post.state = ""
    assert act(api, oda, "hide", target).status_code == 200
    assert act(api, oda, "unhide", target, "It was none.").status_code == 200
    assert {path: api.files()[path] for path in before} == before


def test_a_hidden_note_keeps_its_place_and_a_hidden_readme_its_creator(api: Api, ann: Headers, oda: Headers) -> None:
    path = note(api, ann)
    for target in (path, "taskforces/int4/README.md"):
        assert act(api, oda, "hide", target).status_code == 200
    shown = api.client.get("/v1/taskforces/int4").json()
    assert (shown["creator"], shown["contributors"], shown["note_count"]) == ("ant", ["ant"], 1)
    assert shown["created"] == "2026-11-29 12:00 UTC"
    assert (shown["readme"]["frontmatter"]["hidden"], shown["readme"]["body"]) == ("Spam.", "")
    assert shown["recent_notes"][0]["frontmatter"]["hidden"] == "Spam."
    assert [item["readme_excerpt"] for item in api.client.get("/v1/taskforces").json()["items"]] == [""]
    assert api.client.get(f"/v1/taskforces?q={SECRET}").json()["matched"] == 0
    assert api.client.get("/v1/digest").json()["taskforces"]["newest"][0]["readme_excerpt"] == ""


def test_a_hidden_session_keeps_its_tokens_and_a_hidden_agent_its_owner(api: Api, ann: Headers, oda: Headers) -> None:
    for target in (manifest(api, ann), bio(api, ann)):
        assert act(api, oda, "hide", target).status_code == 200
    told = api.client.get("/v1/traces/ant/s1").json()
    assert (told["agent"], told["total_tokens"], told["model"], told["harness"]) == ("ant", 7, None, "hidden")
    assert told["manifest"]["frontmatter"]["hidden"] == "Spam."
    stats = api.client.get("/v1/stats").json()
    assert (stats["tokens"]["total"], stats["cost_usd"], list(stats["by_model"])) == (7, 0.5, ["unknown"])
    agent = api.client.get("/v1/agents/ant").json()
    assert (agent["hf_user"], agent["agent_bucket"], agent["bio"]) == ("ann", "race/tiny-ant", "")
    said = {"agent_id": "ant", "body": "Still here."}
    assert api.client.post("/v1/messages", json=said, headers=ann).status_code == 201
    check_index(api)


def test_nobody_puts_another_file_where_one_is_hidden(api: Api, ann: Headers, oda: Headers) -> None:
    targets = [make(api, ann) for make in (named_file, readme, artifact, shared, trace_log, bio)]
    for target in targets:
        assert act(api, oda, "hide", target).status_code == 200
    before = api.files()
    assert code(share(api, ann)) == (409, "FILE_HIDDEN")
    assert code(rewrite(api, ann)) == (409, "FILE_HIDDEN")
    assert code(sync(api, ann)) == (409, "FILE_HIDDEN")
    assert code(sync(api, ann, "shared")) == (409, "FILE_HIDDEN")
    assert code(publish(api, ann)) == (409, "FILE_HIDDEN")
    assert code(introduce(api, ann)) == (409, "FILE_HIDDEN")
    assert api.files() == before
    for target in targets:
        assert act(api, oda, "unhide", target).status_code == 200
    assert share(api, ann).status_code == 201
    assert rewrite(api, ann).status_code == 200
    assert sync(api, ann).status_code == 200
    assert publish(api, ann).status_code == 201
    assert introduce(api, ann).status_code == 201


def test_an_author_takes_a_note_back_and_nobody_else_may(api: Api, ann: Headers, oda: Headers) -> None:
    path = note(api, ann)
    assert code(act(api, oda, "retract", path)) == (403, "IDENTITY_MISMATCH")
    assert act(api, ann, "retract", path, "It was wrong.").status_code == 200
    assert SECRET not in api.client.get("/v1/taskforces/int4/notes?expand=1").text
    assert code(act(api, oda, "unhide", path)) == (409, "NOT_HIDDEN")
    assert code(act(api, ann, "retract", "taskforces/int4/README.md")) == (403, "READ_ONLY")
    check_index(api)


def test_what_no_client_wrote_can_not_be_hidden_and_only_an_organizer_hides(
    api: Api, ann: Headers, oda: Headers
) -> None:
    path, before = named_file(api, ann), api.files()
    api.client.post("/v1/messages", json={"agent_id": "ant", "body": "@human-oda"}, headers=ann)
    copy = next(name for name in api.files() if name.startswith("inbox/"))
    for who, target, expected in (
        (ann, path, (403, "NOT_ORGANIZER")),
        ({}, path, (401, "UNAUTHORIZED")),
        (oda, "taskforces/int4/none.csv", (404, "NOT_FOUND")),
        (oda, "taskforces/none/20261129-120000-000_ant.md", (404, "NOT_FOUND")),
        (oda, "taskforces/../README.md", (400, "INVALID_PATH")),
        (oda, "/taskforces/int4/README.md", (400, "INVALID_PATH")),
        (oda, "taskforces", (400, "INVALID_PATH")),
        (oda, "README.md", (400, "INVALID_PATH")),
        (oda, "agents/nobody.md", (404, "NOT_FOUND")),
        (oda, "claims/x.md", (400, "INVALID_PATH")),
        (oda, "results/verification_status.json", (400, "INVALID_PATH")),
        (oda, copy, (400, "INVALID_PATH")),
        (oda, "", (422, "INVALID_REQUEST")),
        (oda, "a\0b", (400, "INVALID_PATH")),
    ):
        for verb in ("hide", "unhide"):
            assert code(act(api, who, verb, target)) == expected, (verb, target)
    assert {name: api.files()[name] for name in before} == before
