"""No bucket grows over its owner's quota, and the refusal comes as early and as plainly as the protocol lets it."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from httpx import Response

from agents import quotas
from agents.quotas import bytes_of
from storage import quota_meter as meter
from storage.buckets import Put
from storage.database import reading, writing
from storage.paths import BucketName
from storage.quota_tally import Usage
from storage.site import Site
from storage.xet.hashes import to_text
from storage.xet.shards import serialise
from tests.conftest import HeldClock
from tests.storage.xet.builders import claim, noise, xorb
from tests.web.hub.conftest import Hub, add, copy, delete

_ROOT = Path(__file__).resolve().parents[3]
BUCKET, OTHER = "race/tiny-a1", "alice/own"


def limit(site: Site, budget: str, most: int | None, *, user: str = "alice") -> None:
    with writing(site.engine) as session:
        kind = next(kind for kind in bytes_of(site.challenge.limits, user) if kind.name == budget)
        quotas.set_limit(session, kind, most, actor="test", reason="a test", now=site.clock())


def used(site: Site, user: str = "alice") -> Usage:
    with reading(site.engine) as session:
        return meter.owner_usage(session, user)


def send(hub: Hub, pieces: list[bytes], bucket: str = BUCKET, user: str = "alice") -> str:
    """Upload a content without putting it anywhere; return its hash."""
    access = hub.access(user, bucket)
    table = xorb(pieces)[1]
    assert hub.send_xorb(access, pieces).status_code == 200
    assert hub.send_shard(access, serialise([claim(table)])).status_code == 200
    return to_text(claim(table).digest)


def failures(answer: Response) -> dict[str, str]:
    return {line["path"]: line["error"] for line in answer.json()["failed"]}


@pytest.fixture
def alices(hub: Hub) -> Hub:
    hub.create("alice", BUCKET)
    hub.create("alice", OTHER)
    return hub


def test_a_file_over_the_quota_is_refused_in_one_line_and_what_fits_is_taken(alices: Hub, site: Site) -> None:
    one, two, small = (send(alices, [noise(size, seed=size)]) for size in (60_000, 60_001, 10_000))
    limit(site, "bucket_bytes", 100_000)
    assert alices.batch("alice", BUCKET, add("one", one)).status_code == 200
    alone = alices.batch("alice", BUCKET, add("two", two))
    assert alone.status_code == 422
    expected = (
        "over quota: alice's buckets hold 60,000 bytes of files, this would make it 120,001, and 100,000 are allowed"
    )
    assert failures(alone) == {"two": expected}
    mixed = alices.batch("alice", BUCKET, add("two", two), add("small", small))
    assert (mixed.status_code, list(failures(mixed))) == (200, ["two"])
    assert used(site) == Usage(70_000, 70_000, 2)


def test_a_big_file_is_overwritten_at_99_percent(alices: Hub, site: Site) -> None:
    limit(site, "bucket_bytes", 100_000)
    limit(site, "bucket_stored_bytes", 100_000)
    limit(site, "bucket_files", 1)
    alices.upload("alice", BUCKET, "big", [noise(99_000, seed=1)])
    alices.upload("alice", BUCKET, "big", [noise(99_500, seed=2)])
    assert used(site) == Usage(99_500, 99_500, 1)


def test_what_a_batch_deletes_makes_room_for_what_it_adds(alices: Hub, site: Site) -> None:
    limit(site, "bucket_bytes", 100_000)
    alices.upload("alice", BUCKET, "old", [noise(90_000, seed=1)])
    fresh = send(alices, [noise(95_000, seed=2)])
    answer = alices.batch("alice", BUCKET, add("new", fresh), delete("old"))
    assert (answer.status_code, used(site)) == (200, Usage(95_000, 95_000, 1))


def test_an_owner_over_a_lowered_limit_may_shrink_and_not_grow(alices: Hub, site: Site) -> None:
    alices.upload("alice", BUCKET, "a", [noise(90_000, seed=1)])
    small, large = send(alices, [noise(20_000, seed=2)]), send(alices, [noise(91_000, seed=3)])
    limit(site, "bucket_bytes", 10_000)
    assert alices.batch("alice", BUCKET, add("a", large)).status_code == 422
    assert alices.batch("alice", BUCKET, add("a", small)).status_code == 200
    assert alices.batch("alice", BUCKET, delete("a")).status_code == 200


def test_chunks_that_files_share_are_stored_once(alices: Hub, site: Site) -> None:
    pieces = [noise(30_000, seed=1), noise(30_000, seed=2)]
    limit(site, "bucket_stored_bytes", 60_000)
    digest = alices.upload("alice", BUCKET, "whole", pieces)
    access, table = alices.access("alice", BUCKET), xorb(pieces)[1]
    assert alices.send_shard(access, serialise([claim(table, 0, 1)])).status_code == 200
    part = to_text(claim(table, 0, 1).digest)
    assert alices.batch("alice", BUCKET, add("part", part), copy("again", digest, BUCKET)).status_code == 200
    assert alices.batch("alice", OTHER, copy("there", digest, BUCKET)).status_code == 200
    assert used(site) == Usage(210_000, 60_000, 4)
    other = send(alices, [noise(10_000, seed=3)])
    assert "different chunks" in failures(alices.batch("alice", BUCKET, add("other", other)))["other"]


def test_files_are_counted(alices: Hub, site: Site) -> None:
    limit(site, "bucket_files", 2)
    empty = "0" * 64
    answer = alices.batch("alice", BUCKET, add("a", empty), add("b", empty), add("c", empty), add("a", empty))
    assert list(failures(answer)) == ["c"]


def test_nobody_pays_for_what_another_owns(alices: Hub, site: Site) -> None:
    digest = alices.upload("alice", BUCKET, "a", [noise(50_000)])
    alices.create("bob", "bob/b")
    limit(site, "bucket_bytes", 10_000, user="bob")
    assert alices.batch("bob", "bob/b", copy("a", digest, BUCKET)).status_code == 422
    limit(site, "bucket_bytes", 50_000, user="bob")
    assert alices.batch("bob", "bob/b", copy("a", digest, BUCKET)).status_code == 200
    assert alices.call("alice", "DELETE", f"/api/buckets/{BUCKET}").status_code == 204
    assert (used(site), used(site, "bob")) == (Usage(), Usage(50_000, 50_000, 1))


def test_a_shard_whose_files_can_never_fit_is_refused_in_a_frame(alices: Hub, site: Site) -> None:
    pieces = [noise(100_000, seed=1), noise(20_000, seed=2)]
    access, table = alices.access("alice", BUCKET), xorb(pieces)[1]
    assert alices.send_xorb(access, pieces).status_code == 200
    limit(site, "bucket_bytes", 110_000)
    answer = alices.send_shard(access, serialise([claim(table)]), "/v2/shards")
    frame = answer.json()
    assert (answer.status_code, frame["type"], frame["retryable"]) == (200, "error", False)
    assert "Over quota: this upload has at least 120,000 bytes of files" in frame["message"]
    assert alices.send_shard(access, serialise([claim(table)]), "/v1/shards").status_code == 413
    digest = to_text(claim(table).digest)
    assert "not uploaded" in failures(alices.batch("alice", BUCKET, add("a", digest)))["a"]


def test_a_xorb_that_can_never_fit_is_refused_before_its_bytes(alices: Hub, site: Site) -> None:
    limit(site, "bucket_stored_bytes", 100_000)
    access, name = alices.access("alice", BUCKET), "ab" * 32
    for length, status in ((100_000, 404), (200_000, 413)):  # 404: send it
        path = f"{access.base}/v1/xorb-grants/default/{name}"
        asked = {"length": length, "checksum": {"algo": "crc64nvme", "value": "1"}}
        assert alices.http.post(path, headers=access.headers, json=asked).status_code == status
    path = f"{access.base}/v1/xorbs/default/{name}"
    answer = alices.http.post(path, headers=access.headers, content=bytes(200_000))
    assert (answer.status_code, "Over quota" in answer.text) == (413, True)


def test_xorbs_that_are_in_no_file_add_up_for_an_hour(alices: Hub, site: Site, clock: HeldClock) -> None:
    limit(site, "bucket_stored_bytes", 100_000)
    for seed, status in ((1, 200), (2, 200), (2, 200), (3, 413)):
        assert alices.send_xorb(alices.access("alice", BUCKET), [noise(60_000, seed=seed)]).status_code == status
    clock.forward(hours=1)
    assert alices.send_xorb(alices.access("alice", BUCKET), [noise(60_000, seed=3)]).status_code == 200


def test_a_bucket_tells_its_owner_alone_what_is_left(alices: Hub, site: Site) -> None:
    limit(site, "bucket_bytes", 100_000)
    alices.upload("alice", BUCKET, "a", [noise(60_000)])
    told = alices.call("alice", "GET", f"/api/buckets/{BUCKET}").json()
    assert (told["size"], told["storedBytes"], told["totalFiles"]) == (60_000, 60_000, 1)
    assert told["quota"]["bucket_bytes"] == {"used": 60_000, "limit": 100_000, "remaining": 40_000}
    assert told["quota"]["bucket_files"] == {"used": 1, "limit": None, "remaining": None}
    for other in ("bob", None):
        assert "quota" not in alices.call(other, "GET", f"/api/buckets/{BUCKET}").json()


def test_strangers_have_nothing_counted_that_is_not_metered(alices: Hub, site: Site) -> None:
    alices.upload("alice", BUCKET, "a", [noise(60_000)])
    for other in ("bob", None):
        assert alices.call(other, "GET", f"/api/buckets/{BUCKET}").json()["storedBytes"] == 60_000
    with writing(site.engine) as session:
        meter.forget(session)
    for other in ("bob", None):
        told = alices.call(other, "GET", f"/api/buckets/{BUCKET}").json()
        assert (told["size"], told["totalFiles"], "storedBytes" in told) == (60_000, 1, False)
    assert alices.call("alice", "GET", f"/api/buckets/{BUCKET}").json()["storedBytes"] == 60_000


def test_what_the_server_writes_is_metered_and_never_refused(alices: Hub, site: Site) -> None:
    limit(site, "bucket_bytes", 10)
    with writing(site.engine) as session:
        site.buckets(session).apply(BucketName("race", "tiny-a1"), [Put("runs/summary.json", bytes(5000))])
        site.buckets(session).apply(site.central, [Put("a", bytes(5000))])
    assert used(site).size == 5000


def test_uploads_side_by_side_never_exceed_the_quota_together(alices: Hub, site: Site) -> None:
    limit(site, "bucket_bytes", 100_000)
    digests = [send(alices, [noise(30_000, seed=seed)], bucket) for seed in range(4) for bucket in (BUCKET, OTHER)]

    def put(number: int) -> int:
        return alices.batch("alice", (BUCKET, OTHER)[number % 2], add(f"f{number}", digests[number])).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(put, range(8))) == [200] * 3 + [422] * 5
    assert used(site).size == 90_000


def test_processes_side_by_side_never_exceed_the_quota_together(alices: Hub, site: Site) -> None:
    digests = [send(alices, [noise(30_000, seed=seed)]) for seed in range(8)]
    command = [sys.executable, "-m", "tests.storage.quota_racer", str(site.settings.data), str(site.settings.challenge)]
    racers = [Popen([*command, *digests[start::2]], cwd=_ROOT, stdout=PIPE, text=True) for start in range(2)]
    taken = [int(racer.communicate(timeout=100)[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0, 0]
    assert (sum(taken), used(site).size) == (3, 90_000)
