"""Taking text away: what is gone is gone everywhere, what stays stays, and the log says why."""

import pytest
from httpx import Response

from board import reindex
from storage.database import reading, writing
from tests.web.api.conftest import Api

SECRET = "hunter2-albatross"
People = tuple[dict[str, str], dict[str, str], dict[str, str]]


@pytest.fixture
def people(api: Api) -> People:
    """Ann with the agent `ant`, Bob with `bee`, and an organizer."""
    ann, bob, oda = api.person("ann"), api.person("bob"), api.person("oda", is_organizer=True)
    api.agent("ant", ann)
    api.agent("bee", bob)
    return ann, bob, oda


def say(api: Api, who: dict[str, str], agent: str, body: str, **more: object) -> str:
    answer = api.client.post("/v1/messages", headers=who, json={"agent_id": agent, "body": body, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["filename"])


def withdraw(
    api: Api, who: dict[str, str], name: str, act: str, reason: str = "It was wrong.", kind: str = "messages"
) -> Response:
    return api.client.post(f"/v1/{kind}/{name}:{act}", headers=who, json={"reason": reason})


def everywhere(api: Api, name: str) -> list[str]:
    """All that a reader can get: every read endpoint, page, feed and stored file."""
    paths = [
        "/v1/messages?expand&limit=0",
        f"/v1/messages/{name}",
        "/api/messages",
        f"/v1/threads/{name}",
        "/v1/inbox/bee?expand",
        "/v1/digest?as=bee",
        f"/v1/messages?q={SECRET}&expand",
        f"/v1/search?q={SECRET}",
        "/v1/moderation",
        "/",
        f"/t/{name}",
        f"/p/{name}",
        f"/p/{name.removesuffix('.md')}.json",
        "/agents/ant",
        f"/search?q={SECRET}&kind=posts",
        "/feeds/board.atom",
        "/feeds/agents/ant.atom",
        "/moderation",
    ]
    texts = []
    for path in paths:
        answer = api.client.get(path)
        assert answer.status_code == 200, path
        echo = f'value="{SECRET}"'  # the form of the search page shows what was asked
        texts.append(f"{path}\n{answer.text.replace(echo, '')}")
    return [*texts, *(f"{path}\n{api.read(path).decode()}" for path in api.files())]


def places(api: Api, name: str) -> list[str]:
    return [text.partition("\n")[0] for text in everywhere(api, name) if SECRET in text.partition("\n")[2]]


def check_index(api: Api) -> None:
    with writing(api.site.engine) as session:
        assert reindex.check(api.site, session) == []


@pytest.mark.parametrize("act", ["retract", "hide"])
def test_what_was_taken_away_is_found_nowhere_and_its_replies_stay(api: Api, people: People, act: str) -> None:
    ann, bob, oda = people
    name = say(api, ann, "ant", f"# {SECRET}\n\nFor @bee: {SECRET}.")
    reply = say(api, bob, "bee", "An answer.", refs=name)
    assert len(places(api, name)) >= 14
    answer = withdraw(api, ann if act == "retract" else oda, name, act)
    assert answer.status_code == 200, answer.text
    assert places(api, name) == []
    thread = api.client.get(f"/v1/threads/{reply}").json()
    state = {"retract": "retracted", "hide": "hidden"}[act]
    assert [(item["filename"], item["state"]) for item in thread["items"]] == [(name, state), (reply, "visible")]
    assert thread["items"][0]["frontmatter"][state] == "It was wrong."
    page = api.client.get(f"/t/{name}", headers={"accept": "text/html"}).text
    assert "It was wrong." in page
    assert "An answer." in page
    (line,) = api.client.get("/v1/moderation").json()["items"]
    by = "human-ann" if act == "retract" else "human-oda"
    assert (line["action"], line["target"], line["by"], line["reason"]) == (act, name, by, "It was wrong.")
    check_index(api)


def test_the_original_is_kept_where_only_the_operator_reads(api: Api, people: People) -> None:
    ann, _, _ = people
    name = say(api, ann, "ant", SECRET)
    withdraw(api, ann, name, "retract")
    with reading(api.site.engine) as session:
        kept = api.site.buckets(session).read(api.site.audit, f"withheld/message_board/{name}")
    assert SECRET in kept.decode()


def test_unhiding_brings_back_every_byte(api: Api, people: People) -> None:
    ann, _, oda = people
    name = say(api, ann, "ant", f"@bee {SECRET}", broadcast=False)
    before = {path: digest for path, digest in api.files().items() if name in path}
    assert len(before) == 2
    withdraw(api, oda, name, "hide")
    assert {path: api.files()[path] for path in before} != before
    assert withdraw(api, oda, name, "unhide", "Too hasty.").status_code == 200
    assert {path: api.files()[path] for path in before} == before
    assert api.client.get(f"/v1/search?q={SECRET}").json()["matched"] == 1
    assert [line["action"] for line in api.client.get("/v1/moderation").json()["items"]] == ["unhide", "hide"]
    check_index(api)


def test_a_broadcast_and_a_reply_of_one_text_leave_no_copy(api: Api, people: People) -> None:
    _, _, oda = people
    api.agent("owl", oda)
    name = say(api, oda, "owl", f"@bee {SECRET}", broadcast=True)
    assert [path for path in api.files() if path.endswith(name)] == [
        f"broadcasts/{name}",
        f"inbox/bee/{name}",
        f"message_board/{name}",
    ]
    withdraw(api, oda, name, "retract")
    assert [path for path in api.files() if SECRET in api.read(path).decode()] == []
    check_index(api)


def test_nobody_takes_away_what_is_not_theirs(api: Api, people: People) -> None:
    ann, bob, oda = people
    name = say(api, ann, "ant", "Mine.")
    before = api.files()
    refusals = [
        (withdraw(api, bob, name, "retract"), 403, "IDENTITY_MISMATCH"),
        (withdraw(api, oda, name, "retract"), 403, "IDENTITY_MISMATCH"),
        (withdraw(api, {}, name, "retract"), 401, "UNAUTHORIZED"),
        (withdraw(api, ann, name, "hide"), 403, "NOT_ORGANIZER"),
        (withdraw(api, ann, name, "unhide"), 403, "NOT_ORGANIZER"),
        (withdraw(api, oda, name, "unhide"), 409, "NOT_HIDDEN"),
        (withdraw(api, ann, "20260101-000000-000_ant.md", "retract"), 404, "NOT_FOUND"),
        (withdraw(api, ann, name, "retract", ""), 422, "INVALID_REQUEST"),
        (withdraw(api, ann, name, "retract", "\0"), 422, "INVALID_REQUEST"),
        (withdraw(api, ann, name, "retract", "x" * 501), 422, "INVALID_REQUEST"),
    ]
    for answer, status, code in refusals:
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    assert api.files() == before


def test_an_author_may_retract_what_is_hidden_and_then_it_stays_away(api: Api, people: People) -> None:
    ann, _, oda = people
    name = say(api, ann, "ant", SECRET)
    withdraw(api, oda, name, "hide")
    assert withdraw(api, oda, name, "hide").status_code == 409
    assert withdraw(api, ann, name, "retract").status_code == 200
    assert withdraw(api, ann, name, "retract").status_code == 409
    assert withdraw(api, oda, name, "unhide").status_code == 409
    assert places(api, name) == []
    check_index(api)


def test_a_retracted_result_leaves_the_ranking_and_stays_listed(api: Api, people: People) -> None:
    ann, _, oda = people
    text = f"---\ntps: 500.5\nppl: 2.3\nmethod: {SECRET}\nstatus: agent-run\ndescription: {SECRET}\n---\n{SECRET}"
    names = []
    for path in ("r1.md", "r2.md"):
        source = api.upload("ant", path, text.replace("500.5", "501.5" if path == "r2.md" else "500.5"))
        names.append(api.client.post("/v1/results", headers=ann, json={"source": source}).json()["filename"])
    assert api.client.get("/v1/leaderboard").json()["rows"][0]["filename"] == names[1]
    assert withdraw(api, ann, names[1], "retract", kind="results").status_code == 200
    board = api.client.get("/v1/leaderboard?best_per_agent=false").json()
    assert [row["filename"] for row in board["rows"]] == [names[0]]
    assert board["meta"]["excluded"]["retracted"] == 1
    assert withdraw(api, oda, names[0], "hide", kind="results").status_code == 200
    assert api.client.get("/v1/leaderboard").json()["rows"] == []
    assert api.client.get("/v1/results").json()["items"] == names[::-1]
    record = api.client.get(f"/v1/results/{names[1]}").json()
    assert record["frontmatter"]["retracted"] == "It was wrong."
    assert record["frontmatter"]["tps"] is None
    shown = [api.client.get(path).text for path in (f"/r/{names[1]}", f"/t/{names[1]}", "/leaderboard?view=raw", "/")]
    shown += [api.client.get(path).text for path in ("/feeds/results.atom", "/api/results", "/v1/results?expand")]
    assert not [text for text in shown if SECRET in text]
    assert "took this result back" in shown[0]
    check_index(api)
    assert withdraw(api, oda, names[0], "unhide", kind="results").status_code == 200
    assert [row["filename"] for row in api.client.get("/v1/leaderboard").json()["rows"]] == [names[0]]
    check_index(api)


def test_a_retracted_source_can_not_be_promoted_again(api: Api, people: People) -> None:
    ann, _, _ = people
    source = api.upload("ant", "m.md", SECRET)
    name = api.client.post("/v1/messages", headers=ann, json={"source": source}).json()["filename"]
    withdraw(api, ann, name, "retract")
    again = api.client.post("/v1/messages", headers=ann, json={"source": source})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "ALREADY_PROMOTED")


def test_superseding_marks_the_old_message_and_links_both_ways(api: Api, people: People) -> None:
    ann, bob, _ = people
    old = say(api, ann, "ant", "First version.")
    new = say(api, ann, "ant", "Second version.", supersedes=old)
    assert api.client.get(f"/v1/messages/{old}").json()["body"] == "First version."
    items = api.client.get(f"/v1/threads/{old}").json()["items"]
    assert [(item["state"], item["superseded_by"]) for item in items] == [("superseded", new), ("visible", None)]
    assert items[1]["frontmatter"]["supersedes"] == old
    page = api.client.get(f"/t/{old}").text
    assert f'href="/t/{new}"' in page
    assert f'href="/t/{old}"' in page
    refused = [
        api.client.post("/v1/messages", headers=bob, json={"agent_id": "bee", "body": "x", "supersedes": old}),
        api.client.post("/v1/messages", headers=ann, json={"agent_id": "ant", "body": "x", "supersedes": "nothing"}),
    ]
    assert [answer.status_code for answer in refused] == [403, 404]
    source = api.upload("bee", "m.md", f"---\nsupersedes: {old}\n---\nNot mine.")
    assert api.client.post("/v1/messages", headers=bob, json={"source": source}).status_code == 201
    assert api.client.get(f"/v1/threads/{old}").json()["items"][0]["superseded_by"] == new
    check_index(api)


def test_the_log_has_pages_and_every_act_is_audited(api: Api, people: People) -> None:
    ann, _, _ = people
    names = [say(api, ann, "ant", f"Number {number}.") for number in range(3)]
    for name in names:
        withdraw(api, ann, name, "retract", f"Because of {name}.")
    first = api.client.get("/v1/moderation?limit=2").json()
    rest = api.client.get(f"/v1/moderation?limit=2&before={first['next']}").json()
    assert [line["target"] for line in [*first["items"], *rest["items"]]] == names[::-1]
    assert (first["count"], rest["next"]) == (3, None)
