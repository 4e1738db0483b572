"""A hostile client of the store is refused with 4xx, and no refusal holds more than 64 MB.

Time is bounded by construction: what is looked at ends at the limits that these tests run into.
"""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import lz4.frame
import pytest

from storage.database import reading
from storage.local import effort
from storage.local.ingest import MAX_SHARD_BYTES, MAX_SHARD_FILES, check_shard, check_xorb
from storage.local.reach import Reach
from storage.xet.chunks import MAX_CHUNK_BYTES, pack
from storage.xet.errors import InvalidXet
from storage.xet.files import MAX_FILE_CHUNKS
from storage.xet.hashes import ZERO, Digest, file_hash, term_hash, to_text
from storage.xet.shards import ENTRY, MAX_FILE_TERMS, MAX_XORBS, RECORD_BYTES, FileClaim, Term, serialise
from storage.xet.xorbs import MAX_XORB_BYTES, MAX_XORB_CHUNKS
from tests.conftest import HeldClock
from tests.storage.xet.builders import claim, noise, xorb
from tests.web.hub.conftest import Access, Hub, add, copy

MINE, THEIRS = "race/tiny-a1", "race/tiny-bob"
MOST_BYTES = 64_000_000
PIECES = [noise(200, seed) for seed in range(8)]


@pytest.fixture
def mine(hub: Hub) -> Access:
    hub.create("alice", MINE)
    access = hub.access("alice", MINE)
    assert hub.send_xorb(access, PIECES).status_code == 200
    return access


def peak_of(attempt: Callable[[], object]) -> int:
    """Run what must be refused; return the most bytes that were held for it."""
    tracemalloc.start()
    try:
        with pytest.raises(InvalidXet):
            attempt()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bombs() -> bytes:
    """Write as many LZ4 bombs as a xorb has room for: each says 128 KiB and unrolls to 60 MB."""
    bomb = lz4.frame.compress(bytes(60_000_000))
    assert len(bomb) < 262_144
    head = b"\0" + len(bomb).to_bytes(3, "little") + b"\1" + MAX_CHUNK_BYTES.to_bytes(3, "little")
    return (head + bomb) * (MAX_XORB_BYTES // (len(bomb) + 8))


XORBS: dict[str, Callable[[], bytes]] = {
    "bombs": bombs,
    "a million chunks": lambda: pack(b"x") * 1_000_000,
    "honest but misnamed": lambda: pack(noise(MAX_CHUNK_BYTES)) * (MAX_XORB_BYTES // (MAX_CHUNK_BYTES + 8)),
    "well packed zeros": lambda: pack(bytes(MAX_CHUNK_BYTES)) * MAX_XORB_CHUNKS,
    "headers of huge chunks": lambda: b"\0\xff\xff\xff\1\xff\xff\xff" * 1_000_000,
}


@pytest.mark.parametrize("case", XORBS)
def test_a_hostile_xorb_is_refused_in_little_memory(tmp_path: Path, case: str) -> None:
    path = tmp_path / "xorb"
    path.write_bytes(XORBS[case]())
    with path.open("rb") as file:
        assert peak_of(lambda: check_xorb(file, Digest(noise(32)))) < 4_000_000


def filled(entry: bytes, more: bytes = b"") -> bytes:
    """Write a shard as large as one may be: a header, then `entry`, then nothing but `more`."""
    start = serialise([])[:RECORD_BYTES] + entry
    room = (MAX_SHARD_BYTES - len(start)) // RECORD_BYTES
    return start + (more or bytes(RECORD_BYTES)) * room


def same_terms(count: int) -> FileClaim:
    """Claim a file of many times the same eight chunks, under a wrong name."""
    (term,), (proof,) = claim(xorb(PIECES)[1]).terms, claim(xorb(PIECES)[1]).proofs
    return FileClaim(Digest(noise(32)), (term,) * count, (proof,) * count)


def unknown_terms(count: int) -> FileClaim:
    terms = tuple(Term(Digest(noise(32, n)), 0, 1, 1) for n in range(count))
    return FileClaim(Digest(noise(32)), terms, (ZERO,) * count)


SHARDS: dict[str, Callable[[], bytes]] = {
    "10^9 terms": lambda: filled(ENTRY.pack(noise(32), 1 << 31, 10**9, 0, 0)),
    "as many terms as fit": lambda: filled(ENTRY.pack(noise(32), 0, MAX_SHARD_BYTES // RECORD_BYTES - 2, 0, 0)),
    "10^9 chunks": lambda: filled(b"\xff" * 32 + bytes(16), ENTRY.pack(noise(32), 0, 10**9, 0, 0)),
    "countless empty files": lambda: serialise([FileClaim(ZERO, (), ())] * (MAX_SHARD_FILES + 1)),
    "many terms": lambda: serialise([same_terms(MAX_FILE_TERMS // 32)]),
    "more chunks than a file has": lambda: serialise([same_terms(MAX_FILE_CHUNKS // 8 + 1)]),
    "terms of unknown xorbs": lambda: serialise([unknown_terms(MAX_FILE_TERMS // 8)]),
    "countless xorbs": lambda: serialise([])[:-RECORD_BYTES] + ENTRY.pack(ZERO, 0, 0, 0, 0) * (MAX_XORBS + 1),
}


@pytest.mark.parametrize("case", SHARDS)
def test_a_hostile_shard_is_refused_in_little_memory(hub: Hub, mine: Access, tmp_path: Path, case: str) -> None:
    path = tmp_path / "shard"
    path.write_bytes(SHARDS[case]())
    with path.open("rb") as file, reading(hub.site.engine) as session:
        reach = Reach(session, int(mine.base.rpartition("/")[2]), "alice")
        assert peak_of(lambda: check_shard(file, reach)) < MOST_BYTES
    if path.stat().st_size < 10_000_000:
        assert hub.send_shard(mine, path.read_bytes()).status_code == 400


def test_a_file_that_asks_for_more_work_than_one_shard_may_is_400(
    hub: Hub, mine: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files, terms and tables all count: an honest shard passes with just enough, and not with one less."""
    honest = serialise([claim(xorb(PIECES)[1])])
    enough = effort.PER_FILE + effort.PER_TERM + len(PIECES) + 2 * effort.PER_SEARCH + effort.PER_TABLE
    monkeypatch.setattr(effort, "MOST", enough - 1)
    refused = hub.send_shard(mine, honest)
    assert refused.status_code == 400
    assert "several smaller files" in refused.json()["error"]
    monkeypatch.setattr(effort, "MOST", enough)
    assert hub.send_shard(mine, honest).status_code == 200


def lies() -> dict[str, FileClaim]:
    true = claim(xorb(PIECES)[1])
    (term,) = true.terms
    backwards = Term(term.xorb, 5, 2, 600)
    return {
        "another name": FileClaim(Digest(noise(32)), true.terms, true.proofs),
        "a longer term": FileClaim(true.digest, (Term(term.xorb, 0, 8, 1601),), true.proofs),
        "past the end": FileClaim(true.digest, (Term(term.xorb, 0, 9, 1600),), true.proofs),
        "backwards": FileClaim(true.digest, (backwards,), true.proofs),
        "no proof of knowing": FileClaim(true.digest, true.terms, (term_hash(b""),)),
        "the empty file with bytes": FileClaim(ZERO, true.terms, true.proofs),
        "a file of nothing": FileClaim(file_hash([(noise(32), 5)]), (), ()),
    }


@pytest.mark.parametrize("lie", lies())
def test_a_lying_shard_is_400(hub: Hub, mine: Access, lie: str) -> None:
    assert hub.send_shard(mine, serialise([lies()[lie]])).status_code == 400


def test_a_hash_from_another_bucket_opens_nothing(hub: Hub, mine: Access) -> None:
    """Know everything about a private file but its bytes: no call turns that into the file."""
    hub.create("bob", THEIRS, private=True)
    secret = [noise(3000, 70), noise(3000, 71)]
    digest = hub.upload("bob", THEIRS, "f", secret)
    known = claim(xorb(secret)[1])
    assert hub.send_shard(mine, serialise([known])).status_code == 400
    assert hub.batch("alice", MINE, add("f", digest)).status_code == 422
    assert hub.batch("alice", MINE, copy("f", digest, THEIRS)).status_code == 422
    reader = hub.access("alice", MINE, "read")
    for version in ("v1", "v2"):
        answer = hub.http.get(f"{reader.base}/{version}/reconstructions/{digest}", headers=reader.headers)
        assert answer.status_code == 404
    theirs = hub.access("bob", THEIRS, "read")
    recipe = hub.http.get(f"{theirs.base}/v2/reconstructions/{digest}", headers=theirs.headers).json()
    url = urlsplit(recipe["xorbs"][to_text(known.terms[0].xorb)][0]["url"])
    query = {key: values[0] for key, values in parse_qs(url.query).items()}
    for forged in ({"by": ""}, {"expires": "99999999999"}, {"chunks": "0-1"}, {"bytes": "0-1"}, {"signature": ""}):
        assert hub.http.get(f"{url.path}?{urlencode(query | forged)}").status_code == 403
    moved = url.path.replace(theirs.base, reader.base)
    assert hub.http.get(f"{moved}?{url.query}").status_code == 403


def test_a_token_that_ran_out_opens_nothing(hub: Hub, mine: Access, clock: HeldClock) -> None:
    clock.forward(hours=1, seconds=1)
    assert hub.send_xorb(mine, [b"late"]).status_code == 401
    assert hub.send_shard(mine, serialise([claim(xorb(PIECES)[1])])).status_code == 401
    name = to_text(xorb(PIECES)[2])
    assert hub.http.post(f"{mine.base}/v1/xorb-grants/default/{name}", headers=mine.headers).status_code == 401
    assert hub.http.get(f"{mine.base}/v1/chunks/default/{name}", headers=mine.headers).status_code == 401


@pytest.mark.parametrize("name", ["x", "%00", "..%2f..%2fetc", "A" * 64, "a" * 4000, "é" * 64])
def test_a_malformed_hash_is_4xx_everywhere(hub: Hub, mine: Access, name: str) -> None:
    for method, path in (
        ("POST", "/v1/xorbs/default/"),
        ("POST", "/v1/xorb-grants/default/"),
        ("GET", "/v1/chunks/default/"),
        ("GET", "/v2/reconstructions/"),
        ("GET", "/xorbs/"),
    ):
        answer = hub.http.request(method, mine.base + path + name, headers=mine.headers)
        assert 400 <= answer.status_code < 500, path
    assert not list(hub.site.blobs.folder.glob("incoming/*"))


def test_a_grant_asked_for_with_nonsense_is_4xx(hub: Hub, mine: Access) -> None:
    url = f"{mine.base}/v1/xorb-grants/default/{to_text(Digest(noise(32)))}"
    for body in (b"", b"{", b"[]", b'{"length":-1}', b'{"length":1e400}', b'{"length":' + b"9" * 5000 + b"}"):
        assert 400 <= hub.http.post(url, content=body, headers=mine.headers).status_code < 500
