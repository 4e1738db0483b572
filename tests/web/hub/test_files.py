"""Files come whole or by range, and never as something a browser would run."""

import pytest

from tests.storage.xet.builders import noise
from tests.web.hub.conftest import Hub

BUCKET = "race/tiny-a1"
DATA = noise(300_000)
URL = f"/buckets/{BUCKET}/resolve/d%20%C3%A9%2Fpage.html"


@pytest.fixture
def digest(hub: Hub) -> str:
    hub.create("alice", BUCKET)
    return hub.upload("alice", BUCKET, "d é/page.html", [DATA[i : i + 70_000] for i in range(0, len(DATA), 70_000)])


def test_head_tells_where_the_store_is(hub: Hub, digest: str) -> None:
    answer = hub.call(None, "HEAD", URL, headers={"Host": "board.example"})
    assert answer.content == b""
    assert answer.headers["X-Xet-Hash"] == digest
    assert answer.headers["Content-Length"] == answer.headers["X-Linked-Size"] == "300000"
    route = f"http://board.example/api/buckets/{BUCKET}/xet-read-token"
    assert answer.headers["Link"] == f'<{route}>; rel="xet-auth"'
    assert answer.headers["X-Xet-Refresh-Route"] == route


def test_a_whole_file(hub: Hub, digest: str) -> None:
    answer = hub.call(None, "GET", URL)
    assert (answer.status_code, answer.content) == (200, DATA)
    assert answer.headers["Content-Length"] == "300000"
    assert hub.call(None, "GET", f"/buckets/{BUCKET}/resolve/d é/page.html").content == DATA


def test_a_page_that_a_user_uploaded_is_saved_not_run(hub: Hub, digest: str) -> None:
    headers = hub.call(None, "GET", URL).headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''page.html"
    assert "sandbox" in headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("header", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=69990-140010", 69_990, 140_011),
        ("bytes=299999-", 299_999, 300_000),
        ("bytes=-5", 299_995, 300_000),
        ("bytes=-999999", 0, 300_000),
        ("bytes=100-99999999999", 100, 300_000),
    ],
)
def test_a_range_is_206_and_exact(hub: Hub, digest: str, header: str, start: int, end: int) -> None:
    answer = hub.call(None, "GET", URL, headers={"Range": header})
    assert answer.status_code == 206
    assert answer.content == DATA[start:end]
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/300000"


@pytest.mark.parametrize("header", ["bytes=300000-", "bytes=5-4", "bytes=-0", "bytes=300000-300001"])
def test_a_range_outside_the_file_is_416(hub: Hub, digest: str, header: str) -> None:
    answer = hub.call(None, "GET", URL, headers={"Range": header})
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == "bytes */300000"


@pytest.mark.parametrize("header", ["bytes=0-1,5-6", "lines=0-1", "bytes=-", "bytes=a-b", "bytes=" + "9" * 400 + "-"])
def test_a_range_of_another_form_gives_the_whole(hub: Hub, digest: str, header: str) -> None:
    answer = hub.call(None, "GET", URL, headers={"Range": header})
    assert (answer.status_code, answer.content) == (200, DATA)


def test_a_browser_that_has_the_file_is_told_so(hub: Hub, digest: str) -> None:
    tag = hub.call(None, "GET", URL).headers["ETag"]
    assert tag == f'"{digest}"'
    for known in (tag, f'"other", W/{tag}', "*"):
        for method in ("GET", "HEAD"):
            answer = hub.call(None, method, URL, headers={"If-None-Match": known, "Range": "bytes=0-0"})
            assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", tag)
    assert hub.call(None, "GET", URL, headers={"If-None-Match": '"other"'}).content == DATA


def test_a_range_of_other_bytes_than_these_gives_the_whole(hub: Hub, digest: str) -> None:
    for condition, status in ((f'"{digest}"', 206), ('"other"', 200), ("Sun, 29 Nov 2026 12:00:00 GMT", 200)):
        headers = {"Range": "bytes=0-4", "If-Range": condition}
        assert hub.call(None, "GET", URL, headers=headers).status_code == status


def test_a_missing_file_says_so(hub: Hub, digest: str) -> None:
    for method in ("GET", "HEAD"):
        answer = hub.call(None, method, f"/buckets/{BUCKET}/resolve/none")
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (404, "EntryNotFound")


def test_a_flipped_byte_on_disk_is_an_error_not_an_answer(hub: Hub, digest: str) -> None:
    (path,) = [path for path in (hub.site.blobs.folder / "xorbs").rglob("*") if path.is_file()]
    raw = bytearray(path.read_bytes())
    raw[1000] ^= 1
    path.write_bytes(raw)
    answer = hub.call(None, "GET", URL)
    assert answer.status_code == 410
    assert answer.headers["X-Error-Code"] == "CORRUPT"


def test_a_flipped_byte_further_on_breaks_the_transfer(hub: Hub) -> None:
    long = noise(1_300_000)  # more than is gathered before an answer starts
    hub.create("alice", BUCKET)
    hub.upload("alice", BUCKET, "long", [long[i : i + 70_000] for i in range(0, len(long), 70_000)])
    (path,) = [path for path in (hub.site.blobs.folder / "xorbs").rglob("*") if path.is_file()]
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    url = f"/buckets/{BUCKET}/resolve/long"
    with pytest.raises(RuntimeError, match="already started"):
        hub.call(None, "GET", url)
    assert hub.call(None, "GET", url, headers={"Range": "bytes=0-99999"}).content == long[:100_000]


@pytest.mark.parametrize(
    "path",
    [
        "..%2F..%2Fetc%2Fpasswd",
        "%2Fetc%2Fpasswd",
        "a%00b",
        "%FF",
        "x" * 4096,
        "d%20%C3%A9",
        "D%20%C3%A9/page.html",
    ],
)
def test_paths_that_no_file_can_have_are_not_there(hub: Hub, digest: str, path: str) -> None:
    for method in ("GET", "HEAD"):
        answer = hub.call(None, method, f"/buckets/{BUCKET}/resolve/{path}")
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (404, "EntryNotFound")
    listed = hub.call(None, "GET", f"/api/buckets/{BUCKET}/tree/{path}", params={"recursive": "true"})
    assert listed.status_code == 200
    assert [file["path"] for file in listed.json()] == (["d é/page.html"] if path == "d%20%C3%A9" else [])
