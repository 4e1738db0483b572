"""A private bucket answers others as if it were absent on every path, and only owners write."""

import pytest

from agents import tokens
from storage.buckets import Put
from storage.database import writing
from storage.local.buckets import LocalBuckets
from tests.conftest import HeldClock
from tests.web.hub.conftest import Hub, add, copy, delete

READS = [
    ("GET", "/api/buckets/{b}", {}),
    ("GET", "/api/buckets/{b}/tree", {}),
    ("GET", "/api/buckets/{b}/tree/dir", {"params": {"recursive": "true"}}),
    ("POST", "/api/buckets/{b}/paths-info", {"json": {"paths": ["dir/a"]}}),
    ("GET", "/api/buckets/{b}/xet-read-token", {}),
    ("HEAD", "/buckets/{b}/resolve/dir/a", {}),
    ("GET", "/buckets/{b}/resolve/dir/a", {}),
]
HIDDEN = "race/tiny-hidden"


@pytest.fixture
def secret(hub: Hub) -> str:
    """Put a file into a private bucket of alice and return its hash."""
    hub.create("alice", HIDDEN, private=True)
    hub.create("bob", "race/tiny-bob")
    return hub.upload("alice", HIDDEN, "dir/a", [b"a secret", b"in two pieces"])


@pytest.mark.parametrize(("method", "path", "options"), READS)
def test_a_private_bucket_looks_absent_to_others(hub: Hub, secret: str, method: str, path: str, options: dict) -> None:
    assert hub.call("alice", method, path.format(b=HIDDEN), **options).status_code == 200
    for user in ("bob", None):
        answer = hub.call(user, method, path.format(b=HIDDEN), **options)
        absent = hub.call(user, method, path.format(b="race/tiny-absent"), **options)
        assert answer.status_code == absent.status_code == 404
        assert answer.headers["X-Error-Code"] == absent.headers["X-Error-Code"] == "RepoNotFound"
        assert answer.text == absent.text.replace("tiny-absent", "tiny-hidden")


@pytest.mark.parametrize(("method", "path", "options"), READS)
def test_anybody_reads_a_public_bucket(hub: Hub, method: str, path: str, options: dict) -> None:
    hub.create("alice", "race/tiny-open")
    hub.upload("alice", "race/tiny-open", "dir/a", [b"for all"])
    assert hub.call(None, method, path.format(b="race/tiny-open"), **options).status_code == 200


@pytest.mark.parametrize(("method", "path", "options"), READS)
def test_a_wrong_token_is_refused_even_where_none_would_do(hub: Hub, method: str, path: str, options: dict) -> None:
    hub.create("alice", "race/tiny-open")
    headers = {"Authorization": "Bearer pdk_wrong"}
    assert hub.http.request(method, path.format(b="race/tiny-open"), headers=headers, **options).status_code == 401


def test_writes_need_the_owner(hub: Hub, secret: str) -> None:
    hub.create("alice", "race/tiny-open")
    for bucket, refused in (("race/tiny-open", 403), (HIDDEN, 404)):
        assert hub.batch("bob", bucket, delete("dir/a")).status_code == refused
        assert hub.call("bob", "GET", f"/api/buckets/{bucket}/xet-write-token").status_code == refused
        assert hub.batch(None, bucket, delete("dir/a")).status_code == 401
        assert hub.call(None, "GET", f"/api/buckets/{bucket}/xet-write-token").status_code == 401
    assert [file["path"] for file in hub.tree("alice", HIDDEN, recursive=True)] == ["dir/a"]


def test_the_servers_own_buckets_have_no_other_writer(hub: Hub) -> None:
    hub.add_user("system")  # even if the name were ever given away
    with writing(hub.site.engine) as session:
        LocalBuckets(session, hub.site.blobs).apply(hub.site.central, [Put("README.md", b"hello")])
    central, audit = str(hub.site.central), str(hub.site.audit)
    for user in ("alice", "system"):
        assert hub.batch(user, central, delete("README.md")).status_code == 403
        assert hub.call(user, "GET", f"/api/buckets/{central}/xet-write-token").status_code == 403
        assert hub.call(user, "DELETE", f"/api/buckets/{central}").status_code == 403
    assert hub.batch("alice", audit, delete("x")).status_code == 404
    assert hub.call("alice", "GET", f"/api/buckets/{audit}").status_code == 404
    assert hub.call(None, "GET", f"/buckets/{central}/resolve/README.md").content == b"hello"


def test_a_hash_of_anothers_bucket_cannot_be_added(hub: Hub, secret: str) -> None:
    answer = hub.batch("bob", "race/tiny-bob", add("stolen", secret))
    unknown = hub.batch("bob", "race/tiny-bob", add("stolen", "1" * 64))
    assert answer.status_code == unknown.status_code == 422
    assert answer.json() == unknown.json()
    assert answer.json()["failed"][0]["path"] == "stolen"
    assert hub.tree("bob", "race/tiny-bob") == []


def test_a_hash_uploaded_to_one_bucket_is_not_thereby_in_another_of_its_owner(hub: Hub, secret: str) -> None:
    hub.create("alice", "race/tiny-second")
    assert hub.batch("alice", "race/tiny-second", add("a", secret)).status_code == 422
    assert hub.batch("alice", "race/tiny-second", copy("a", secret, HIDDEN)).status_code == 200


def test_a_file_is_not_copied_out_of_anothers_private_bucket(hub: Hub, secret: str) -> None:
    answer = hub.batch("bob", "race/tiny-bob", copy("stolen", secret, HIDDEN))
    absent = hub.batch("bob", "race/tiny-bob", copy("stolen", secret, "race/tiny-absent"))
    assert answer.status_code == absent.status_code == 422
    assert answer.json() == {**absent.json(), "failed": answer.json()["failed"]}
    assert hub.batch("bob", "race/tiny-bob", copy("stolen", secret, "race/tiny-bob")).status_code == 422
    assert hub.tree("bob", "race/tiny-bob") == []


def test_a_bucket_hidden_later_closes_tokens_and_urls_given_out_before(hub: Hub) -> None:
    hub.create("alice", "race/tiny-open")
    digest = hub.upload("alice", "race/tiny-open", "a", [b"for all"])
    access = hub.access("bob", "race/tiny-open", "read")
    recipe = f"{access.base}/v2/reconstructions/{digest}"
    (found,) = hub.http.get(recipe, headers=access.headers).json()["xorbs"].values()
    url = found[0]["url"]
    assert hub.http.get(url).status_code == 206
    hub.call("alice", "PUT", "/api/buckets/race/tiny-open/settings", json={"private": True})
    assert hub.http.get(recipe, headers=access.headers).status_code == 404
    assert hub.http.get(url).status_code == 404


def test_a_token_ends_with_its_hour_its_bucket_and_its_generation(hub: Hub, clock: HeldClock) -> None:
    hub.create("alice", "race/tiny-a1")
    access = hub.access("alice", "race/tiny-a1")
    grant = f"{access.base}/v1/chunks/default/{'0' * 64}"
    assert hub.http.get(grant, headers=access.headers).json()["error"].startswith("No xorb")
    clock.forward(minutes=59)
    assert hub.http.get(grant, headers=access.headers).status_code == 404
    clock.forward(minutes=2)
    assert hub.http.get(grant, headers=access.headers).status_code == 401
    fresh = hub.access("alice", "race/tiny-a1")
    hub.call("alice", "DELETE", "/api/buckets/race/tiny-a1")
    hub.create("alice", "race/tiny-a1")
    assert hub.send_xorb(fresh, [b"x"]).status_code == 404
    again = hub.access("alice", "race/tiny-a1")
    assert again.base != fresh.base
    (hub.site.blobs.folder / "generation").unlink()
    assert hub.send_xorb(again, [b"x"]).status_code == 404
    assert hub.access("alice", "race/tiny-a1").base != again.base


def test_a_token_opens_no_other_bucket_and_a_read_token_does_not_write(hub: Hub, secret: str) -> None:
    hub.create("alice", "race/tiny-second")
    first, second = hub.access("alice", HIDDEN), hub.access("alice", "race/tiny-second")
    crossed = hub.http.get(f"{second.base}/v2/reconstructions/{secret}", headers=first.headers)
    assert crossed.status_code == 401
    assert hub.http.get(f"{second.base}/v2/reconstructions/{secret}", headers=second.headers).status_code == 404
    reader = hub.access("alice", HIDDEN, "read")
    assert hub.send_xorb(reader, [b"x"]).status_code == 403
    assert hub.send_shard(reader, b"").status_code == 403
    assert hub.http.post(f"{reader.base}/v1/xorb-grants/default/{secret}", headers=reader.headers).status_code == 403


@pytest.mark.parametrize("change", ["flip", "user", "mode", "none", "garbage", "empty"])
def test_a_forged_token_is_refused(hub: Hub, secret: str, change: str) -> None:
    access = hub.access("alice", HIDDEN, "read")
    token = access.headers["Authorization"].removeprefix("Bearer ")
    payload, signature = token.split(".")
    forged = {
        "flip": f"{payload}.{'A' if signature[0] != 'A' else 'B'}{signature[1:]}",
        "user": f"{payload[:-4]}AAAA.{signature}",
        "mode": f"{payload}AAAA.{signature}",
        "none": payload,
        "garbage": "é¼.x",
        "empty": "",
    }[change]
    headers = {"Authorization": f"Bearer {forged}".encode("latin-1")}
    assert hub.http.get(f"{access.base}/v2/reconstructions/{secret}", headers=headers).status_code == 401


def test_a_revoked_token_closes_the_access_it_was_traded_for(hub: Hub, secret: str) -> None:
    reader, writer = hub.access("alice", HIDDEN, "read"), hub.access("alice", HIDDEN)
    recipe = f"{reader.base}/v2/reconstructions/{secret}"
    (found,) = hub.http.get(recipe, headers=reader.headers).json()["xorbs"].values()
    url = found[0]["url"]
    assert hub.http.get(url).status_code == 206
    with writing(hub.site.engine) as session:
        tokens.revoke(session, hub.users["alice"], secret=hub.site.secret, now=hub.site.clock())
    assert hub.http.get(recipe, headers=reader.headers).status_code == 401
    assert hub.http.get(url).status_code == 401
    assert hub.send_xorb(writer, [b"x"]).status_code == 401
    assert hub.send_shard(writer, b"").status_code == 401
