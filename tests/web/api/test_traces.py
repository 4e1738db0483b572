import pytest
from sqlmodel import select

from board import reindex
from storage.buckets import Put
from storage.database import reading, writing
from storage.frontmatter import parse_bytes
from tests.web.api.asking import code

RECORD = {
    *("agent", "session_id", "harness", "model", "share", "completeness", "promoted_at", "started_at", "total_tokens"),
    *("tool_calls", "result_ref", "summary_excerpt", "path", "primary_log_file", "proof"),
}


@pytest.fixture
def ada(api) -> dict[str, str]:
    headers = api.person("ada")
    api.agent("blue-heron", headers)
    return headers


def manifest(session_id: str, /, **fields: object) -> str:
    head = {"schema_version": 1, "harness": "h", "session_id": session_id, **fields}
    lines = [f"{key}: {value}" for key, value in head.items() if value is not None]
    return "\n".join(["---", *lines, "---", "", "Tried  int4\nand won."])


FULL = {"model": "m1", "total_tokens": 100, "input_tokens": 70, "output_tokens": 30, "cost_usd": 0.5}


def lay(api, agent: str, session_id: str, log: bytes | None = None, /, **fields: object) -> str:
    """Put a session's folder into an agent's bucket; returns its source."""
    source = api.upload(agent, f"traces/{session_id}/manifest.md", manifest(session_id, **fields))
    if log is not None:
        api.upload(agent, f"traces/{session_id}/log.jsonl", log)
    return source.removesuffix("manifest.md")


def post(api, headers, source: str, **more: str):
    return api.client.post("/v1/traces", json={"source": source, **more}, headers=headers)


def test_a_stats_share_publishes_the_manifest_alone(api, ada) -> None:
    started = "2026-11-28T23:00:00-05:00"
    forged = {"agent": "eve", "promoted_at": "never", "via": "raw", "share": "full", "completeness": "full"}
    source = lay(
        api, "blue-heron", "s1", b"secret", **FULL, started_at=started, tool_calls=9, result_ref="r.md", **forged
    )
    answer = post(api, ada, source)
    stored = api.read("traces/blue-heron/s1/manifest.md")
    assert (answer.status_code, answer.json()) == (
        201,
        {
            "session_id": "s1",
            "agent": "blue-heron",
            "share": "stats",
            "path": "traces/blue-heron/s1/",
            "files_copied": 1,
            "bytes_copied": len(stored),
            "completeness": "full",
            "skipped": [],
        },
    )
    assert [path for path in api.files() if path.startswith("traces/")] == ["traces/blue-heron/s1/manifest.md"]
    head = parse_bytes(stored).frontmatter
    assert [head[key] for key in ("agent", "promoted_at", "via", "share", "completeness")] == [
        *("blue-heron", "2026-11-29T12:00:00.000Z", "bucket", "stats", "full")
    ]
    shown = api.client.get("/v1/traces/blue-heron/s1").json()
    assert set(shown) == RECORD | {"manifest", "files"}
    assert (shown["started_at"], shown["total_tokens"], shown["tool_calls"]) == ("2026-11-29T04:00:00.000Z", 100, 9)
    assert (shown["summary_excerpt"], shown["result_ref"]) == ("Tried int4 and won.", "r.md")
    assert shown["files"] == [{"path": "manifest.md", "size": len(stored)}]


def test_a_full_share_publishes_the_folder_and_a_later_stats_share_takes_it_back(api, ada) -> None:
    source = lay(api, "blue-heron", "s1", b"the log", native_log_file="log.jsonl")
    api.upload("blue-heron", "traces/s1/sub/agent.jsonl", b"more")
    api.upload("blue-heron", "traces/s1/.cache/x", b"junk")
    answer = post(api, ada, source, share="full").json()
    assert (answer["share"], answer["files_copied"], answer["completeness"]) == ("full", 3, "partial")
    assert answer["skipped"] == ["traces/s1/.cache/x"]
    assert api.read("traces/blue-heron/s1/log.jsonl") == b"the log"
    assert api.read("traces/blue-heron/s1/sub/agent.jsonl") == b"more"
    assert api.client.get("/v1/traces/blue-heron/s1").json()["primary_log_file"] == "log.jsonl"
    api.site.clock.forward(hours=1)
    again = post(api, ada, source.rstrip("/"))
    assert (again.status_code, again.json()["share"], again.json()["files_copied"]) == (201, "stats", 1)
    assert [path for path in api.files() if path.startswith("traces/")] == ["traces/blue-heron/s1/manifest.md"]
    listed = api.client.get("/v1/traces", params={"expand": "1"}).json()
    assert (listed["count"], listed["items"][0]["promoted_at"]) == (1, "2026-11-29T13:00:00.000Z")


WRONG: list[dict[str, object]] = [
    {"schema_version": None},
    {"harness": None},
    {"session_id": None},
    {"session_id": "other"},
    {"harness": "[a]"},
    {"total_tokens": -1},
    {"total_tokens": 1.5},
    {"total_tokens": "'12'"},
    {"total_tokens": "12k"},
    {"total_tokens": "true"},
    {"total_tokens": "1_000"},
    {"total_tokens": 10**16},
    {"output_tokens": ".inf"},
    {"tokens": "12"},
    {"tokens": "{total: -1}"},
    {"tool_calls": -1},
    {"cost_usd": -0.5},
    {"cost_usd": "'free'"},
    {"started_at": "yesterday"},
    {"native_log_file": "../x"},
]


def test_a_manifest_that_cannot_be_counted_is_refused(api, ada) -> None:
    for fields in WRONG:
        answer = post(api, ada, lay(api, "blue-heron", "s1", **{**FULL, **fields}))
        assert code(answer) == (400, "INVALID_FRONTMATTER"), fields
    assert not any(path.startswith("traces/") for path in api.files())


def test_bad_calls_have_their_code_and_write_nothing(api, ada) -> None:
    eve = api.person("eve")
    source = lay(api, "blue-heron", "s1", b"log", native_log_file="none.jsonl")
    loud = lay(api, "blue-heron", "s2", broadcast="true")
    odd = api.upload("blue-heron", "traces/a b/manifest.md", manifest("a b")).removesuffix("manifest.md")
    before = api.files()
    for sent, headers, expected in (
        ({"source": source}, {}, (401, "UNAUTHORIZED")),
        ({"source": source}, eve, (403, "BUCKET_NOT_OWNED_BY_CALLER")),
        ({"source": source, "share": "full"}, ada, (400, "INVALID_FRONTMATTER")),
        ({"source": loud}, ada, (403, "NOT_ORGANIZER")),
        ({"source": odd}, ada, (400, "INVALID_PATH")),
        ({"source": source.replace("s1", "s3")}, ada, (404, "SOURCE_NOT_FOUND")),
        ({"source": source, "share": "half"}, ada, (422, "INVALID_REQUEST")),
        ({}, ada, (422, "INVALID_REQUEST")),
    ):
        assert code(api.client.post("/v1/traces", json=sent, headers=headers)) == expected, sent
    assert api.files() == before
    for url, expected in (
        ("/v1/traces/blue-heron/s1", (404, "NOT_FOUND")),
        ("/v1/traces/Blue/s1", (400, "INVALID_PATH")),
        ("/v1/traces/blue-heron/a%20b", (400, "INVALID_PATH")),
        ("/v1/traces?after=x", (400, "INVALID_QUERY")),
        ("/v1/traces?before=2026-11-29T12:00:00Z", (400, "INVALID_QUERY")),
        ("/v1/traces?limit=x", (400, "INVALID_QUERY")),
        ("/v1/traces?agent=Blue", (400, "INVALID_PATH")),
    ):
        assert code(api.client.get(url)) == expected, url


def test_listing_pages_through_equal_stamps_in_both_directions(api, ada) -> None:
    api.agent("blue", ada)
    made = []
    for number in range(3):
        for agent in ("blue", "blue-heron"):
            fields = {"model": f"m{number}", "harness": "other" if number else "h"}
            made.append(f"{agent}/s{number}")
            assert post(api, ada, lay(api, agent, f"s{number}", **fields)).status_code == 201
        if number:
            api.site.clock.forward(minutes=1)
    ordered = ["blue/s0", "blue/s1", "blue-heron/s0", "blue-heron/s1", "blue/s2", "blue-heron/s2"]
    for order, cursor, expected in (("asc", "after", ordered), ("desc", "before", ordered[::-1])):
        seen, at = [], {}
        while True:
            found = api.client.get("/v1/traces", params={"order": order, "limit": 2, **at}).json()
            assert (found["count"], found["matched"]) == (6, 6)
            seen += found["items"]
            if found["next"] is None:
                break
            at = {cursor: found["next"]}
        assert seen == expected
    for params, expected in (
        ({"agent": "blue"}, 3),
        ({"model": "m1"}, 2),
        ({"harness": "h"}, 2),
        ({"share": "full"}, 0),
        ({"q": "TRIED"}, 6),
        ({"q": "blue-heron/s2"}, 1),
    ):
        found = api.client.get("/v1/traces", params=params).json()
        assert (found["count"], found["matched"]) == (6, expected), params
    assert set(api.client.get("/v1/traces?expand=1").json()["items"][0]) == RECORD


def test_stats_are_a_floor_with_the_unknown_counted_apart(api, ada) -> None:
    assert api.client.get("/v1/stats").json() == {
        "tokens": dict.fromkeys(("total", "input", "output", "cache_read", "cache_creation", "reasoning"), 0),
        "missing": dict.fromkeys(("total", "input", "output", "cache_read", "cache_creation", "reasoning"), 0),
        "cost_usd": None,
        "sessions_counted": 0,
        "sessions_missing_tokens": 0,
        "agents_reporting": 0,
        "by_model": {},
        "by_agent": {},
        "by_day": {},
        "generated_at": "2026-11-29T12:00:00.000Z",
    }
    assert api.client.get("/v1/digest").json()["stats"] is None
    api.agent("blue", ada)
    post(api, ada, lay(api, "blue-heron", "s1", **FULL, started_at="2026-11-28T12:00:00Z"))
    post(api, ada, lay(api, "blue-heron", "s2", model="m2", tokens="{total: 7, reasoning: 0}"))
    post(api, ada, lay(api, "blue", "s3"))
    found = api.client.get("/v1/stats").json()
    assert found["tokens"] == {
        **{"total": 107, "input": 70, "output": 30},
        **{"cache_read": 0, "cache_creation": 0, "reasoning": 0},
    }
    assert found["missing"] == {
        **{"total": 1, "input": 2, "output": 2},
        **{"cache_read": 3, "cache_creation": 3, "reasoning": 2},
    }
    assert (found["cost_usd"], found["sessions_counted"], found["sessions_missing_tokens"]) == (0.5, 2, 1)
    assert found["agents_reporting"] == 1
    assert found["by_model"] == {
        "m1": {"total_tokens": 100, "sessions_counted": 1, "sessions_missing_tokens": 0},
        "m2": {"total_tokens": 7, "sessions_counted": 1, "sessions_missing_tokens": 0},
        "unknown": {"total_tokens": 0, "sessions_counted": 0, "sessions_missing_tokens": 1},
    }
    assert set(found["by_agent"]) == {"blue", "blue-heron"}
    assert set(found["by_day"]) == {"2026-11-28", "2026-11-29"}
    assert api.client.get("/v1/digest").json()["stats"] == {
        "total_tokens": 107,
        "sessions_counted": 2,
        "agents_reporting": 1,
    }


def test_traces_rebuild_to_the_rows_they_left_and_a_bad_manifest_is_reported(api, ada) -> None:
    post(api, ada, lay(api, "blue-heron", "s1", b"x", native_log_file="log.jsonl", **FULL), share="full")
    before = api.client.get("/v1/traces/blue-heron/s1").json(), api.client.get("/v1/stats").json()
    with writing(api.site.engine) as session:
        assert reindex.check(api.site, session) == []
        for table in reindex.TABLES:
            for row in session.exec(select(table)).all():
                session.delete(row)
        bad = manifest("s9", total_tokens=-1)
        api.site.buckets(session).apply(api.site.central, [Put("traces/x/s9/manifest.md", bad.encode())])
        report = reindex.rebuild(api.site, session)
    assert [line.partition(":")[0] for line in report.bad] == ["traces/x/s9/manifest.md"]
    assert (api.client.get("/v1/traces/blue-heron/s1").json(), api.client.get("/v1/stats").json()) == before
    with reading(api.site.engine) as session:
        assert "s9" not in api.client.get("/v1/traces").text
