"""Reconstructions lead to exactly the bytes, through URLs that open nothing else."""

from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from storage.xet.hashes import to_text
from storage.xet.shards import FileClaim, serialise
from storage.xet.xorbs import read_chunks
from tests.conftest import HeldClock
from tests.storage.xet.builders import claim, file_of, noise, xorb
from tests.web.hub.conftest import Access, Hub, add

BUCKET = "race/tiny-a1"
PIECES = [noise(1000, seed) for seed in range(5)]


@pytest.fixture
def digest(hub: Hub) -> str:
    hub.create("alice", BUCKET, private=True)
    return hub.upload("alice", BUCKET, "f", PIECES)


@pytest.fixture
def access(hub: Hub, digest: str) -> Access:
    return hub.access("alice", BUCKET, "read")


def recipe(hub: Hub, access: Access, digest: str, span: str | None = None, version: int = 2) -> Any:
    headers = access.headers | ({"Range": span} if span else {})
    return hub.http.get(f"{access.base}/v{version}/reconstructions/{digest}", headers=headers)


def first_url(hub: Hub, access: Access, digest: str, span: str | None = None) -> str:
    (entries,) = recipe(hub, access, digest, span).json()["xorbs"].values()
    return str(entries[0]["url"])


def unpack(raw: bytes) -> bytes:
    return b"".join(chunk.data for chunk in read_chunks(BytesIO(raw)))


@pytest.mark.parametrize(("start", "end"), [(0, 4999), (17, 2500), (1000, 1999), (4999, 9999)])
def test_following_a_recipe_gives_the_range(hub: Hub, access: Access, digest: str, start: int, end: int) -> None:
    body = recipe(hub, access, digest, f"bytes={start}-{end}").json()
    (term,), ((entry,),) = body["terms"], body["xorbs"].values()
    ((only,),) = (entry["ranges"],)
    span = f"bytes={only['bytes']['start']}-{only['bytes']['end']}"
    answer = hub.http.get(entry["url"], headers={"Range": span})
    assert answer.status_code == 206
    data, skip = unpack(answer.content), body["offset_into_first_range"]
    assert data[skip : skip + end - start + 1] == b"".join(PIECES)[start : end + 1]
    assert term["unpacked_length"] == len(data)
    assert hub.http.get(entry["url"]).content == answer.content


def test_the_older_form_leads_to_the_same_bytes(hub: Hub, access: Access, digest: str) -> None:
    new, old = (recipe(hub, access, digest, "bytes=17-2500", version).json() for version in (2, 1))
    assert new["terms"] == old["terms"]
    ((entry,),) = old["fetch_info"].values()
    span = f"bytes={entry['url_range']['start']}-{entry['url_range']['end']}"
    answer = hub.http.get(entry["url"], headers={"Range": span})
    assert unpack(answer.content) == b"".join(PIECES[:3])
    assert entry["range"] == {"start": 0, "end": 3}


@pytest.mark.parametrize("version", [1, 2])
def test_a_range_past_the_end_is_416(hub: Hub, access: Access, digest: str, version: int) -> None:
    assert recipe(hub, access, digest, "bytes=5000-5999", version).status_code == 416
    assert recipe(hub, access, "0" * 64, "bytes=0-", version).status_code in (404, 416)


@pytest.mark.parametrize("version", [1, 2])
def test_an_unknown_hash_is_404_and_a_malformed_one_400(hub: Hub, access: Access, digest: str, version: int) -> None:
    assert recipe(hub, access, "1" * 64, version=version).headers["X-Error-Code"] == "EntryNotFound"
    for name in ("x", "%00", "%ff", digest.upper(), digest[:-1] + "%00"):
        answer = recipe(hub, access, name, version=version)
        assert (answer.status_code, answer.headers["X-Error-Code"]) == (400, "INVALID_XET")


def test_a_deleted_file_is_no_longer_given_out(hub: Hub, access: Access, digest: str) -> None:
    hub.batch("alice", BUCKET, {"type": "deleteFile", "path": "f"})
    assert recipe(hub, access, digest).status_code == 404


def test_a_url_opens_its_own_bytes_and_no_others(hub: Hub, access: Access, digest: str) -> None:
    url = first_url(hub, access, digest, "bytes=1000-1999")
    assert unpack(hub.http.get(url).content) == PIECES[1]
    for span in ("bytes=0-", "bytes=1007-2015", "bytes=1008-2016", "bytes=0-10", "bytes=-5"):
        assert hub.http.get(url, headers={"Range": span}).status_code == 403
    part = hub.http.get(url, headers={"Range": "bytes=1010-1019"})
    assert part.content == hub.http.get(url).content[2:12]


@pytest.mark.parametrize("field", ["chunks", "bytes", "by", "expires", "signature", "digest", "bucket"])
def test_an_altered_url_is_refused(hub: Hub, access: Access, digest: str, field: str) -> None:
    hub.create("alice", "race/tiny-second")
    hub.upload("alice", "race/tiny-second", "f", PIECES)
    other = hub.access("alice", "race/tiny-second", "read")
    parts = urlsplit(first_url(hub, access, digest, "bytes=0-999"))
    query = {key: values[0] for key, values in parse_qs(parts.query).items()}
    changed = {"chunks": "0-5", "bytes": "0-5039", "by": "", "expires": "99999999999", "signature": "A" * 43}
    path = parts.path
    if field in changed:
        assert query[field] != changed[field]
        query[field] = changed[field]
    elif field == "digest":
        path = path.replace(path.rpartition("/")[2], to_text(noise(32)))
    else:
        path = path.replace(access.base, other.base)
    assert path != parts.path or field in changed
    assert hub.http.get(f"{path}?{urlencode(query)}").status_code == 403


@pytest.mark.parametrize(
    "query", ["", "?chunks=a&bytes=b&expires=c&signature=d", "?chunks=1-&bytes=-1&expires=1&signature=x"]
)
def test_a_malformed_url_is_refused(hub: Hub, access: Access, digest: str, query: str) -> None:
    path = urlsplit(first_url(hub, access, digest)).path
    assert hub.http.get(path + query).status_code in (403, 422)


def test_a_url_expires(hub: Hub, access: Access, digest: str, clock: HeldClock) -> None:
    url = first_url(hub, access, digest)
    clock.forward(minutes=29)
    assert hub.http.get(url).status_code == 206
    clock.forward(minutes=2)
    assert hub.http.get(url).status_code == 403


def test_a_damaged_xorb_is_never_sent(hub: Hub, access: Access, digest: str) -> None:
    (path,) = [path for path in (hub.site.blobs.folder / "xorbs").rglob("*") if path.is_file()]
    raw = bytearray(path.read_bytes())
    raw[1500] ^= 1
    path.write_bytes(raw)
    assert hub.http.get(first_url(hub, access, digest)).status_code == 410
    assert hub.http.get(first_url(hub, access, digest, "bytes=0-999")).status_code == 206


def test_terms_of_many_xorbs_come_with_one_url_per_range(hub: Hub, access: Access) -> None:
    writer = hub.access("alice", BUCKET)
    first, second = claim(xorb(PIECES)[1], 1, 2), claim(xorb(PIECES)[1], 3, 5)
    both = FileClaim(
        file_of([PIECES[1], PIECES[3], PIECES[4]]), first.terms + second.terms, first.proofs + second.proofs
    )
    assert hub.send_shard(writer, serialise([both])).status_code == 200
    hub.batch("alice", BUCKET, add("g", to_text(both.digest)))
    body = recipe(hub, access, to_text(both.digest)).json()
    ((one, two),) = body["xorbs"].values()
    assert [entry["ranges"][0]["chunks"] for entry in (one, two)] == [{"start": 1, "end": 2}, {"start": 3, "end": 5}]
    assert one["url"] != two["url"]
