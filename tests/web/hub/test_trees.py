"""Listings come in pages that join up, with the times that sync compares."""

from storage.buckets import Put
from storage.database import writing
from storage.local.buckets import LocalBuckets
from tests.conftest import HeldClock
from tests.web.hub.conftest import Hub, add

CENTRAL = "race/tiny-main-bucket"


def fill(hub: Hub, *paths: str) -> None:
    with writing(hub.site.engine) as session:
        store = LocalBuckets(session, hub.site.blobs, clock=hub.site.clock)
        store.apply(hub.site.central, [Put(path, b"x") for path in paths])


def all_pages(hub: Hub, url: str) -> list[str]:
    seen: list[str] = []
    while url:
        answer = hub.call(None, "GET", url)
        assert answer.status_code == 200
        seen += [entry["path"] for entry in answer.json()]
        url = answer.links.get("next", {}).get("url", "")
    return seen


def test_pages_join_up(hub: Hub) -> None:
    paths = [f"d é/{i}.md" for i in range(7)] + ["top.md"]
    fill(hub, *paths)
    assert all_pages(hub, f"/api/buckets/{CENTRAL}/tree?recursive=true&limit=3") == sorted(paths)
    assert all_pages(hub, f"/api/buckets/{CENTRAL}/tree/d%20%C3%A9?recursive=true&limit=3") == sorted(paths)[:7]
    assert all_pages(hub, f"/api/buckets/{CENTRAL}/tree?limit=1") == ["d é", "top.md"]


def test_a_prefix_may_be_one_segment_or_many(hub: Hub) -> None:
    fill(hub, "a/b/c.md", "a/b/d/e.md", "a/bc.md")
    for prefix in ("/a%2Fb", "/a/b", "/a%2Fb%2F"):
        assert [entry["path"] for entry in hub.tree(None, CENTRAL, prefix)] == ["a/b/c.md", "a/b/d"]
        assert [e["path"] for e in hub.tree(None, CENTRAL, prefix, recursive=True)] == ["a/b/c.md", "a/b/d/e.md"]


def test_entries_say_what_clients_read(hub: Hub) -> None:
    fill(hub, "a/b.md", "c.md")
    folder, file = hub.tree(None, CENTRAL)
    assert folder == {"type": "directory", "path": "a", "uploadedAt": "2026-11-29T12:00:00.000Z"}
    assert file["type"] == "file"
    assert (file["size"], len(file["xetHash"])) == (1, 64)
    assert file["mtime"] == file["uploadedAt"] == "2026-11-29T12:00:00.000Z"


def test_an_old_file_that_was_just_uploaded_counts_as_new(hub: Hub, clock: HeldClock) -> None:
    hub.create("alice", "race/tiny-a1")
    digest = hub.upload("alice", "race/tiny-a1", "old", [b"x"])
    later_ms = int(clock.now.timestamp() * 1000) + 86_400_000
    hub.batch("alice", "race/tiny-a1", add("old", digest, mtime=1000), add("young", digest, mtime=later_ms))
    old, young = hub.tree("alice", "race/tiny-a1")
    assert old["mtime"] == "2026-11-29T12:00:00.000Z"
    assert young["mtime"] == "2026-11-30T12:00:00.000Z"


def test_paths_info_leaves_out_what_is_missing(hub: Hub) -> None:
    fill(hub, "a/b.md", "c.md")
    wanted = {"paths": ["c.md", "missing", "a/b.md", "a", "../x"]}
    answer = hub.call(None, "POST", f"/api/buckets/{CENTRAL}/paths-info", json=wanted)
    assert [entry["path"] for entry in answer.json()] == ["a/b.md", "c.md"]
    too_many = hub.call(None, "POST", f"/api/buckets/{CENTRAL}/paths-info", json={"paths": ["x"] * 1001})
    assert too_many.status_code == 422
