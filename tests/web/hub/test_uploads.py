"""Only what was checked gets in, and answers don't tell what others have."""

import lz4.frame
import pytest
from sqlmodel import SQLModel, func, select

from storage.database import reading
from storage.local.rows import ContentRow, XorbRow
from storage.xet.chunks import MAX_CHUNK_BYTES, Scheme
from storage.xet.hashes import Digest, to_text
from storage.xet.shards import serialise
from storage.xet.xorbs import MAX_XORB_BYTES
from tests.storage.xet.builders import claim, footer, name_of, noise, xorb, xorb_of_schemes
from tests.web.hub.conftest import Access, Hub, add

BUCKET = "race/tiny-a1"
PIECES = [noise(70_000, 1), b"abcd" * 10_000, noise(4, 3)]


@pytest.fixture
def access(hub: Hub) -> Access:
    hub.create("alice", BUCKET)
    return hub.access("alice", BUCKET)


def post_xorb(hub: Hub, access: Access, name: str, body: bytes) -> int:
    return hub.http.post(f"{access.base}/v1/xorbs/default/{name}", content=body, headers=access.headers).status_code


def count(hub: Hub, table: type[SQLModel]) -> int:
    with reading(hub.site.engine) as session:
        return session.exec(select(func.count()).select_from(table)).one()


def is_clean(hub: Hub) -> bool:
    """Tell whether neither rows nor files nor temporary files were left behind."""
    files = [path for path in hub.site.blobs.folder.rglob("*/*") if path.is_file()]
    return count(hub, XorbRow) == count(hub, ContentRow) == len(files) == 0


def test_a_token_comes_in_the_body_and_in_headers(hub: Hub, access: Access) -> None:
    answer = hub.call("alice", "GET", f"/api/buckets/{BUCKET}/xet-write-token", headers={"Host": "board.example"})
    body = answer.json()
    assert body["casUrl"].startswith(f"http://board.example/cas/{hub.site.blobs.generation}/")
    assert body["exp"] - hub.site.clock().timestamp() >= 600
    assert answer.headers["X-Xet-Cas-Url"] == body["casUrl"]
    assert answer.headers["X-Xet-Access-Token"] == body["accessToken"]
    assert answer.headers["X-Xet-Token-Expiration"] == str(body["exp"])


@pytest.mark.parametrize("scheme", list(Scheme))
def test_every_scheme_is_taken_in_and_read_back(hub: Hub, access: Access, scheme: Scheme) -> None:
    raw = xorb_of_schemes([(piece, scheme) for piece in PIECES])
    _, table, name = xorb(PIECES)
    assert post_xorb(hub, access, to_text(name), raw) == 200
    assert hub.send_shard(access, serialise([claim(table)])).json() == {"result": 1}
    digest = to_text(claim(table).digest)
    assert hub.batch("alice", BUCKET, add("f", digest)).status_code == 200
    assert hub.call(None, "GET", f"/buckets/{BUCKET}/resolve/f").content == b"".join(PIECES)


def test_a_footer_is_dropped(hub: Hub, access: Access) -> None:
    raw, table, name = xorb(PIECES)
    assert post_xorb(hub, access, to_text(name), raw + footer(table)) == 200
    assert hub.site.blobs.path(to_text(name)).read_bytes() == raw


def spoiled() -> dict[str, tuple[str, bytes]]:
    raw, _, name = xorb(PIECES)
    text = to_text(name)
    bomb = lz4.frame.compress(bytes(50_000_000))
    head = b"\0" + len(bomb).to_bytes(3, "little") + b"\1" + MAX_CHUNK_BYTES.to_bytes(3, "little")
    return {
        "wrong name": (to_text(Digest(noise(32))), raw),
        "not a name": ("x" * 64, raw),
        "flipped": (text, raw[:100] + bytes([raw[100] ^ 1]) + raw[101:]),
        "truncated": (text, raw[:-1]),
        "cut at a chunk": (text, raw[: 8 + 70_000]),
        "with more behind": (text, raw + b"x"),
        "empty": (text, b""),
        "a bomb": (text, head + bomb),
    }


@pytest.mark.parametrize("case", spoiled())
def test_a_spoiled_xorb_is_400_and_leaves_nothing(hub: Hub, access: Access, case: str) -> None:
    assert post_xorb(hub, access, *spoiled()[case]) == 400
    assert is_clean(hub)


def test_a_xorb_over_the_limit_is_413_however_it_is_sent(hub: Hub, access: Access) -> None:
    piece = bytes(1 << 20)
    name = to_text(name_of([b"x"]))
    assert post_xorb(hub, access, name, piece * 65) == 413
    url = f"{access.base}/v1/xorbs/default/{name}"
    unannounced = (piece for _ in range(MAX_XORB_BYTES // len(piece) + 1))
    assert hub.http.post(url, content=unannounced, headers=access.headers).status_code == 413
    assert is_clean(hub)


def test_uploads_need_a_token(hub: Hub, access: Access) -> None:
    raw, table, name = xorb(PIECES)
    for path, body in (
        (f"/v1/xorbs/default/{to_text(name)}", raw),
        ("/v2/shards", serialise([claim(table)])),
        ("/v1/shards", b""),
        ("/shards", b""),
        (f"/v1/xorb-grants/default/{to_text(name)}", b"{}"),
        ("/v1/telemetry", b"{}"),
    ):
        assert hub.http.post(access.base + path, content=body).status_code == 401
    assert hub.http.get(f"{access.base}/v1/chunks/default/{to_text(name)}").status_code == 401
    assert is_clean(hub)


def test_the_three_addresses_of_shards_all_register(hub: Hub, access: Access) -> None:
    _, table, _ = xorb(PIECES)
    hub.send_xorb(access, PIECES)
    streamed = hub.send_shard(access, serialise([claim(table)]), "/v2/shards")
    assert (streamed.status_code, streamed.json()) == (200, {"type": "result"})
    assert hub.send_shard(access, serialise([claim(table, 0, 1)]), "/shards").json() == {"result": 1}
    assert hub.send_shard(access, serialise([claim(table, 0, 1)]), "/v1/shards").json() == {"result": 0}


def test_any_prefix_is_taken(hub: Hub, access: Access) -> None:
    raw, _, name = xorb(PIECES)
    url = f"{access.base}/v1/xorbs/default-merkledb/{to_text(name)}"
    assert hub.http.post(url, content=raw, headers=access.headers).json() == {"was_inserted": True}
    assert not is_clean(hub)


@pytest.mark.parametrize("path", ["/v2/shards", "/v1/shards", "/shards"])
def test_a_false_shard_is_400_and_registers_nothing(hub: Hub, access: Access, path: str) -> None:
    _, table, _ = xorb(PIECES)
    hub.send_xorb(access, PIECES)
    true = serialise([claim(table)])
    lie = serialise([claim(table, 0, 1), claim(xorb([b"never uploaded"])[1])])
    for body in (lie, true[:-1], true[:60], b"", b"x" * 500, true[:100] + bytes([true[100] ^ 1]) + true[101:]):
        assert hub.send_shard(access, body, path).status_code == 400
    assert count(hub, ContentRow) == 0


def test_a_xorb_of_anothers_bucket_is_unknown_even_to_who_knows_its_chunks(hub: Hub, access: Access) -> None:
    hub.create("bob", "race/tiny-bob", private=True)
    theirs = hub.access("bob", "race/tiny-bob")
    _, table, name = xorb(PIECES)
    hub.send_xorb(theirs, PIECES)
    answer = hub.send_shard(access, serialise([claim(table)]))
    unknown = hub.send_shard(access, serialise([claim(xorb([b"nobody's"])[1])]))
    assert answer.status_code == unknown.status_code == 400
    assert answer.json() == unknown.json()
    grant = f"/v1/xorb-grants/default/{to_text(name)}"
    assert hub.http.post(access.base + grant, headers=access.headers).status_code == 404
    assert hub.http.post(theirs.base + grant, headers=theirs.headers).status_code == 200


def test_answers_do_not_tell_what_others_uploaded(hub: Hub, access: Access) -> None:
    hub.create("bob", "race/tiny-bob", private=True)
    hub.upload("bob", "race/tiny-bob", "f", PIECES)
    _, table, _ = xorb(PIECES)
    assert hub.send_xorb(access, PIECES).json() == {"was_inserted": True}
    assert hub.send_shard(access, serialise([claim(table)])).json() == {"result": 1}
    assert hub.send_xorb(access, PIECES).json() == {"was_inserted": False}


def test_telemetry_is_taken_and_forgotten(hub: Hub, access: Access) -> None:
    assert hub.http.post(f"{access.base}/v1/telemetry", content=b"{}", headers=access.headers).status_code == 204
