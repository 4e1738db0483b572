"""A batch does what it can and says of each other line why not."""

import pytest

from tests.web.hub.conftest import Hub, add, copy, delete

BUCKET = "race/tiny-a1"
EMPTY = "0" * 64


@pytest.fixture
def digest(hub: Hub) -> str:
    hub.create("alice", BUCKET)
    return hub.upload("alice", BUCKET, "a", [b"abc"])


def paths(hub: Hub) -> list[str]:
    return [file["path"] for file in hub.tree("alice", BUCKET, recursive=True)]


def test_lines_take_effect_in_order(hub: Hub, digest: str) -> None:
    lines = [add("b", digest), delete("a"), add("c/d", EMPTY), delete("b"), add("b", EMPTY)]
    answer = hub.batch("alice", BUCKET, *lines)
    assert answer.json() == {"success": True, "processed": 5, "succeeded": 5, "failed": []}
    assert [(f["path"], f["size"]) for f in hub.tree("alice", BUCKET, recursive=True)] == [("b", 0), ("c/d", 0)]


def test_a_partial_failure_is_200_and_names_each_refusal(hub: Hub, digest: str) -> None:
    lines = [
        add("b", digest),
        add("c", "1" * 64),
        delete("none"),
        copy("d", digest, BUCKET),
        copy("e", "2" * 64, BUCKET),
    ]
    answer = hub.batch("alice", BUCKET, *lines)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["success"], body["succeeded"]) == (False, 2)
    assert [line["path"] for line in body["failed"]] == ["c", "none", "e"]
    assert all(line["error"] for line in body["failed"])
    assert paths(hub) == ["a", "b", "d"]


@pytest.mark.parametrize("path", ["../x", "A"])
def test_a_path_that_is_refused_twice_counts_twice(hub: Hub, digest: str, path: str) -> None:
    """Because of its form or its twin: neither line was done."""
    body = hub.batch("alice", BUCKET, add(path, digest), add("b", digest), add(path, digest)).json()
    assert (body["processed"], body["succeeded"]) == (3, 1)
    assert [line["path"] for line in body["failed"]] == [path, path]
    assert hub.batch("alice", BUCKET, add(path, digest), add(path, digest)).status_code == 422


@pytest.mark.parametrize("between", [0, 1])
def test_a_file_that_is_deleted_twice_is_deleted_by_the_first_line(hub: Hub, digest: str, between: int) -> None:
    """Whether or not other lines stand between the two."""
    lines = [delete("a"), *[add("b", digest)] * between, delete("a"), delete("a")]
    body = hub.batch("alice", BUCKET, *lines).json()
    failed = [{"path": "a", "error": "file not found"}] * 2
    assert body == {"success": False, "processed": len(lines), "succeeded": len(lines) - 2, "failed": failed}
    assert paths(hub) == ["b"] * between


@pytest.mark.parametrize("path", ["../x", "/x", "x/", "x//y", "./x", "", "a\u0000b", "a\\b", "x" * 1025, "e\u0301"])
def test_a_path_outside_the_rules_is_refused_in_words(hub: Hub, digest: str, path: str) -> None:
    for line in (add(path, digest), copy(path, digest, BUCKET), delete(path)):
        answer = hub.batch("alice", BUCKET, line)
        assert answer.status_code == 422
        assert len(answer.json()["failed"][0]["error"]) > 10
    assert paths(hub) == ["a"]


def test_dot_led_names_spaces_and_accents_are_fine_in_ones_own_bucket(hub: Hub, digest: str) -> None:
    assert hub.batch("alice", BUCKET, add(".bucket-sync-handshake", digest), add("d é/x y", digest)).status_code == 200
    assert paths(hub) == [".bucket-sync-handshake", "a", "d é/x y"]


@pytest.mark.parametrize(
    "body",
    [
        b"not json\n",
        b"[1]\n",
        b'{"type":"moveFile","path":"x"}\n',
        b'{"type":"addFile","path":"x","xetHash":"zz"}\n',
        b'{"type":"addFile","path":5,"xetHash":"' + b"0" * 64 + b'"}\n',
        b'{"type":"addFile","path":"x","xetHash":"' + b"0" * 64 + b'","mtime":1e400}\n',
        b'{"type":"addFile","path":"x","xetHash":"' + b"0" * 64 + b'","mtime":' + b"9" * 400 + b"}\n",
        b'{"type":"copyFile","path":"x","xetHash":"' + b"0" * 64 + b'","sourceRepoType":"space","sourceRepoId":"a"}\n',
        b'{"type":"copyFile","path":"x","xetHash":"' + b"0" * 64 + b'","sourceRepoType":"bucket","sourceRepoId":"."}\n',
        b"[" * 100_000,
        b"\xff\xfe\n",
    ],
)
def test_a_malformed_line_refuses_the_whole_batch(hub: Hub, digest: str, body: bytes) -> None:
    good = b'{"type":"deleteFile","path":"a"}\n'
    answer = hub.call("alice", "POST", f"/api/buckets/{BUCKET}/batch", content=good + body)
    assert answer.status_code in (400, 422)
    assert isinstance(answer.json()["error"], str)
    assert paths(hub) == ["a"]


def test_a_batch_has_a_limit(hub: Hub, digest: str) -> None:
    line = b'{"type":"deleteFile","path":"a"}\n'
    assert hub.call("alice", "POST", f"/api/buckets/{BUCKET}/batch", content=line * 5001).status_code == 422
    assert hub.call("alice", "POST", f"/api/buckets/{BUCKET}/batch", content=b" " * (17 << 20)).status_code == 413
    assert paths(hub) == ["a"]


@pytest.mark.parametrize(
    "twin", ["dir/file.md", "DIR/File.md", "Dir/FILE.MD", "Dir/File.md/x", "dir/file.md/x/y", "Dir", "dIR"]
)
def test_a_name_that_another_computer_would_write_over_is_refused(hub: Hub, digest: str, twin: str) -> None:
    assert hub.batch("alice", BUCKET, add("Dir/File.md", digest)).status_code == 200
    for line in (add(twin, digest), copy(twin, digest, BUCKET)):
        answer = hub.batch("alice", BUCKET, line)
        assert answer.status_code == 422
        assert "Dir/File.md" in answer.json()["failed"][0]["error"]
    assert paths(hub) == ["Dir/File.md", "a"]
    assert hub.batch("alice", BUCKET, add("Dir/File.md", EMPTY), add("dir/other", EMPTY)).status_code == 200


@pytest.mark.parametrize(
    ("first", "second"), [("É", "é"), ("straße", "STRASSE"), ("x", "x/y"), ("x/y", "x"), ("X/y", "x")]
)
def test_twins_within_one_batch_are_refused_too(hub: Hub, digest: str, first: str, second: str) -> None:
    answer = hub.batch("alice", BUCKET, add(first, digest), add(second, digest))
    assert [line["path"] for line in answer.json()["failed"]] == [second]
    assert paths(hub) == sorted([first, "a"])


def test_a_name_that_the_same_batch_frees_may_be_taken_before(hub: Hub, digest: str) -> None:
    for line in (add("A", digest), add("a/b", digest)):  # the client sends what it adds before what it deletes
        assert hub.batch("alice", BUCKET, line).status_code == 422
    assert hub.batch("alice", BUCKET, add("A", digest), delete("a")).json()["success"] is True
    assert hub.batch("alice", BUCKET, add("a/b", digest), delete("A")).json()["success"] is True
    again = hub.batch("alice", BUCKET, add("a", digest), delete("a/b"), add("a/b", digest))
    assert [line["path"] for line in again.json()["failed"]] == ["a/b"]
    assert paths(hub) == ["a"]


def test_an_empty_batch_is_done_at_once(hub: Hub, digest: str) -> None:
    assert hub.batch("alice", BUCKET).json()["success"] is True


def test_a_copy_takes_the_files_size_and_the_time_of_copying(hub: Hub, digest: str) -> None:
    hub.create("bob", "race/tiny-bob")
    assert hub.batch("bob", "race/tiny-bob", copy("x", digest, BUCKET)).status_code == 200
    (file,) = hub.tree("bob", "race/tiny-bob")
    assert (file["size"], file["mtime"]) == (3, file["uploadedAt"])
    assert hub.call("bob", "GET", "/buckets/race/tiny-bob/resolve/x").content == b"abc"
    hub.batch("alice", BUCKET, delete("a"))
    assert hub.call("bob", "GET", "/buckets/race/tiny-bob/resolve/x").content == b"abc"
    assert hub.batch("bob", "race/tiny-bob", copy("y", digest, BUCKET)).status_code == 422


def test_half_a_character_is_refused_before_anything_is_done(hub: Hub) -> None:
    hub.create("alice", "race/tiny-a1")
    for bad in (add("a\ud800", "0" * 64), delete("\udfff"), copy("a", "0" * 64, "race/\ud800")):
        answer = hub.batch("alice", "race/tiny-a1", add("good", "0" * 64), bad)
        assert answer.status_code == 422
        assert answer.headers["X-Error-Code"] == "MALFORMED_BATCH"
    assert hub.tree("alice", "race/tiny-a1") == []
    for path, body in (
        ("/api/buckets/race/tiny-a1/paths-info", b'{"paths": ["\\ud800"]}'),
        ("/api/repos/move", b'{"fromRepo": "race/tiny-a1", "toRepo": "alice/\\ud800"}'),
    ):
        headers = {"Content-Type": "application/json"}
        assert hub.call("alice", "POST", path, content=body, headers=headers).status_code == 422
