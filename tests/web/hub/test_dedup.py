"""What a client is told it needn't send is what its bucket's writer could read anyway, and nothing else."""

import struct
from dataclasses import dataclass, replace

import pytest
from blake3 import blake3
from sqlmodel import select

from storage.database import reading, writing
from storage.local import sweep as sweeping
from storage.local.buckets import LocalBuckets
from storage.local.quarantine import set_xorb_aside
from storage.local.reach import Reach
from storage.local.rows import ClaimRow
from storage.paths import parse_bucket
from storage.xet.dedup import FOOTER_BYTES
from storage.xet.hashes import chunk_hash, to_text
from storage.xet.shards import ENTRY, HEADER, FileClaim, serialise
from tests.conftest import HeldClock
from tests.storage.xet.builders import claim, file_of, noise, xorb
from tests.web.hub.conftest import Access, Hub, add, copy, delete
from web.hub.access import is_readable

MINE, THEIRS, HIDDEN = "race/tiny-a1", "race/tiny-bob", "race/tiny-hidden"
PIECES = [noise(3000, seed) for seed in range(4)]
OTHERS = [noise(3000, seed) for seed in range(10, 14)]


@dataclass
class Told:
    """A dedup answer, read back: by xorb the hashed chunks with their lengths."""

    key: bytes
    expires_s: int
    xorbs: dict[str, list[tuple[bytes, int]]]

    def knows(self, piece: bytes) -> bool:
        hashed = blake3(chunk_hash(piece), key=self.key).digest()
        return any((hashed, len(piece)) in chunks for chunks in self.xorbs.values())


def read(raw: bytes) -> Told:
    footer = struct.unpack("<9Q32s12Q", raw[-FOOTER_BYTES:])
    assert footer[0] == 1
    assert footer[1] == HEADER.size
    assert footer[-1] == len(raw) - FOOTER_BYTES
    position, xorbs = footer[2], {}
    while (head := ENTRY.unpack_from(raw, position))[0] != b"\xff" * 32:
        chunks = [ENTRY.unpack_from(raw, position + (n + 1) * ENTRY.size) for n in range(head[2])]
        assert sum(length for _, _, length, _, _ in chunks) == head[3]
        xorbs[to_text(head[0])] = [(name, length) for name, _, length, _, _ in chunks]
        position += (head[2] + 1) * ENTRY.size
    return Told(footer[9], footer[11], xorbs)


def ask(hub: Hub, access: Access, piece: bytes) -> Told | None:
    url = f"{access.base}/v1/chunks/default-merkledb/{to_text(chunk_hash(piece))}"
    answer = hub.http.get(url, headers=access.headers)
    assert answer.status_code in (200, 404)
    return read(answer.content) if answer.status_code == 200 else None


def granted(hub: Hub, access: Access, pieces: list[bytes]) -> int:
    url = f"{access.base}/v1/xorb-grants/default/{to_text(xorb(pieces)[2])}"
    return hub.http.post(url, json={"length": 1}, headers=access.headers).status_code


def built_on(pieces: list[bytes], start: int = 0, end: int | None = None) -> FileClaim:
    return claim(xorb(pieces)[1], start, end)


def shard(hub: Hub, access: Access, *claims: FileClaim) -> int:
    return hub.send_shard(access, serialise(list(claims))).status_code


@pytest.fixture
def mine(hub: Hub) -> Access:
    hub.create("alice", MINE)
    return hub.access("alice", MINE)


def test_the_first_chunk_of_ones_own_file_tells_the_whole_xorb(hub: Hub, mine: Access, clock: HeldClock) -> None:
    hub.upload("alice", MINE, "f", PIECES)
    told = ask(hub, mine, PIECES[0])
    assert told
    assert all(told.knows(piece) for piece in PIECES)
    assert not told.knows(OTHERS[0])
    assert clock.now.timestamp() < told.expires_s < (clock.now + sweeping.KEPT_FOR).timestamp()
    again = ask(hub, mine, PIECES[0])
    assert again
    assert again.key != told.key
    assert ask(hub, mine, OTHERS[0]) is None


def test_all_xorbs_of_the_file_are_told_but_not_one_that_is_named_as_its_only_chunk(hub: Hub, mine: Access) -> None:
    lone = [noise(500, 99)]
    for pieces in (PIECES, OTHERS, lone):
        assert hub.send_xorb(mine, pieces).status_code == 200
    parts = [built_on(PIECES), built_on(OTHERS), built_on(lone)]
    whole = FileClaim(
        file_of(PIECES + OTHERS + lone),
        tuple(term for part in parts for term in part.terms),
        tuple(proof for part in parts for proof in part.proofs),
    )
    assert shard(hub, mine, whole, built_on(lone)) == 200
    told = ask(hub, mine, PIECES[0])
    assert told
    assert all(told.knows(piece) for piece in PIECES + OTHERS)
    assert not told.knows(lone[0])
    assert to_text(xorb(lone)[2]) not in told.xorbs
    by_name = ask(hub, mine, lone[0])
    assert by_name
    assert by_name.knows(lone[0])


def test_a_public_file_is_told_to_others_and_may_be_built_on(hub: Hub, mine: Access) -> None:
    hub.create("bob", THEIRS)
    hub.upload("bob", THEIRS, "f", PIECES)
    assert granted(hub, mine, PIECES) == 200
    told = ask(hub, mine, PIECES[0])
    assert told
    assert all(told.knows(piece) for piece in PIECES)
    assert shard(hub, mine, built_on(PIECES)) == 200
    assert hub.batch("alice", MINE, add("f", to_text(built_on(PIECES).digest))).status_code == 200
    assert hub.call(None, "GET", f"/buckets/{MINE}/resolve/f").content == b"".join(PIECES)


def test_a_readable_file_is_told_however_many_unreadable_ones_begin_alike(
    hub: Hub, mine: Access, clock: HeldClock
) -> None:
    """Newer ones that nobody else may know of take no place from it: their number would show, too."""
    hub.create("bob", THEIRS)
    hub.upload("bob", THEIRS, "f", PIECES)
    clock.forward(seconds=1)
    hub.create("bob", HIDDEN, private=True)
    theirs = hub.access("bob", HIDDEN)
    many = [PIECES[0], *(bytes([seed]) * 100 for seed in range(100))]
    hub.send_xorb(theirs, many)
    assert shard(hub, theirs, *(built_on(many, 0, end) for end in range(2, 102))) == 200
    told = ask(hub, mine, PIECES[0])
    assert told
    assert told.knows(PIECES[3])


def test_what_rows_say_is_readable_is_what_the_hub_says(hub: Hub) -> None:
    buckets: dict[str, str] = {}
    for owner, name, private in (("alice", MINE, True), ("bob", THEIRS, False), ("bob", HIDDEN, True)):
        hub.create(owner, name, private=private)
        digest = hub.upload(owner, name, "f", [noise(300, len(buckets) + 50)])
        buckets[name] = digest
    with reading(hub.site.engine) as session:
        store = LocalBuckets(session, hub.site.blobs)
        for user in ("alice", "bob", "cleo", ""):
            readable = {name for name in buckets if is_readable(store.get(parse_bucket(name)), user)}
            within = Reach(session, 0, user).contents(buckets.values())
            assert {name for name, digest in buckets.items() if digest in within} == readable


def test_a_private_file_looks_unknown_in_every_answer(hub: Hub, mine: Access) -> None:
    hub.create("bob", HIDDEN, private=True)
    hub.upload("bob", HIDDEN, "f", PIECES)
    assert ask(hub, mine, PIECES[0]) is None
    assert (granted(hub, mine, PIECES), granted(hub, mine, OTHERS)) == (404, 404)
    here, nowhere = (hub.send_shard(mine, serialise([built_on(pieces)])) for pieces in (PIECES, OTHERS))
    assert (here.status_code, here.json()) == (nowhere.status_code, nowhere.json())
    assert here.status_code == 400
    far = built_on(PIECES, 3, 4)
    past = FileClaim(far.digest, (replace(far.terms[0], end=99),), far.proofs)
    assert hub.send_shard(mine, serialise([past])).json() == nowhere.json()
    assert hub.send_xorb(mine, PIECES).json() == {"was_inserted": True}
    assert hub.send_shard(mine, serialise([built_on(PIECES)])).json() == {"result": 1}
    theirs = hub.access("bob", HIDDEN)
    assert granted(hub, theirs, PIECES) == 200
    assert ask(hub, theirs, PIECES[0])


def test_an_upload_without_a_file_is_told_to_nobody_else(hub: Hub, mine: Access) -> None:
    hub.create("bob", THEIRS)
    theirs = hub.access("bob", THEIRS)
    hub.send_xorb(theirs, PIECES)
    shard(hub, theirs, built_on(PIECES))
    assert ask(hub, mine, PIECES[0]) is None
    assert granted(hub, mine, PIECES) == 404
    assert shard(hub, mine, built_on(PIECES)) == 400


def test_of_a_xorb_that_is_public_in_part_only_that_part_is_open(hub: Hub, mine: Access) -> None:
    hub.create("bob", HIDDEN, private=True)
    hub.create("bob", THEIRS)
    hidden = hub.access("bob", HIDDEN)
    hub.send_xorb(hidden, PIECES)
    open_part = built_on(PIECES, 1, 3)
    assert shard(hub, hidden, built_on(PIECES), open_part) == 200
    hub.batch("bob", HIDDEN, add("all", to_text(built_on(PIECES).digest)), add("part", to_text(open_part.digest)))
    assert hub.batch("bob", THEIRS, copy("part", to_text(open_part.digest), HIDDEN)).status_code == 200
    told = ask(hub, mine, PIECES[1])
    assert told
    assert told.knows(PIECES[1])
    assert told.knows(PIECES[2])
    assert not told.knows(PIECES[0])
    assert not told.knows(PIECES[3])
    assert [length for _, length in told.xorbs[to_text(xorb(PIECES)[2])]] == [0, 3000, 3000]
    assert ask(hub, mine, PIECES[0]) is None
    assert granted(hub, mine, PIECES) == 404
    for start, end in ((0, 4), (0, 2), (2, 4), (3, 4)):
        assert shard(hub, mine, built_on(PIECES, start, end)) == 400
    assert shard(hub, mine, built_on(PIECES, 2, 3), open_part) == 200


def test_what_was_told_may_be_built_on_after_its_file_is_gone(hub: Hub, mine: Access, clock: HeldClock) -> None:
    hub.create("bob", THEIRS)
    hub.upload("bob", THEIRS, "f", PIECES)
    assert ask(hub, mine, PIECES[0])
    hub.batch("bob", THEIRS, delete("f"))
    clock.forward(days=14)
    sweeping.sweep(hub.site.engine, hub.site.blobs, now=clock())
    mine = hub.access("alice", MINE)
    assert shard(hub, mine, built_on(PIECES)) == 200
    hub.create("alice", "race/tiny-a2")
    assert shard(hub, hub.access("alice", "race/tiny-a2"), built_on(PIECES)) == 200


def test_what_was_granted_may_be_built_on_after_its_file_is_gone(hub: Hub, mine: Access, clock: HeldClock) -> None:
    hub.create("bob", THEIRS)
    hub.upload("bob", THEIRS, "f", PIECES)
    assert granted(hub, mine, PIECES) == 200
    assert hub.call("bob", "DELETE", f"/api/buckets/{THEIRS}").status_code < 300
    clock.forward(days=20)
    sweeping.sweep(hub.site.engine, hub.site.blobs, now=clock())
    assert shard(hub, hub.access("alice", MINE), built_on(PIECES)) == 200


def test_a_file_that_turned_private_is_told_no_more(hub: Hub, mine: Access) -> None:
    hub.create("bob", THEIRS)
    hub.upload("bob", THEIRS, "f", PIECES)
    assert hub.call("bob", "PUT", f"/api/buckets/{THEIRS}/settings", json={"private": True}).status_code == 200
    assert ask(hub, mine, PIECES[0]) is None
    assert granted(hub, mine, PIECES) == 404


def test_asking_writes_nothing_where_nothing_new_is_told(hub: Hub, mine: Access) -> None:
    hub.upload("alice", MINE, "f", PIECES)
    with writing(hub.site.engine) as session:
        before = len(session.exec(select(ClaimRow)).all())
    assert ask(hub, mine, PIECES[0])
    assert ask(hub, mine, OTHERS[0]) is None
    with writing(hub.site.engine) as session:
        assert len(session.exec(select(ClaimRow)).all()) == before


def test_a_reader_is_told_nothing(hub: Hub, mine: Access) -> None:
    hub.upload("alice", MINE, "f", PIECES)
    reader = hub.access("bob", MINE, "read")
    name = to_text(chunk_hash(PIECES[0]))
    assert hub.http.get(f"{reader.base}/v1/chunks/default/{name}", headers=reader.headers).status_code == 403
    assert hub.http.get(f"{mine.base}/v1/chunks/default/nothash", headers=mine.headers).status_code == 400


def test_a_damaged_xorb_that_was_set_aside_is_offered_no_more(hub: Hub, mine: Access) -> None:
    hub.upload("alice", MINE, "f", PIECES)
    with writing(hub.site.engine) as session:
        set_xorb_aside(session, hub.site.blobs, to_text(xorb(PIECES)[2]))
    assert ask(hub, mine, PIECES[0]) is None
    assert granted(hub, mine, PIECES) == 404
    assert shard(hub, mine, built_on(PIECES)) == 400
    assert hub.call("alice", "GET", f"/buckets/{MINE}/resolve/f").status_code == 410
