import pytest
from sqlmodel import Session, select

from agents.limits import RateLimited
from agents.ownership import BucketMissing, BucketNotOwned, NotRegistered
from agents.sources import RecordTooLarge, SourceNotFound
from board.promotion import AlreadyPromoted, UnstorableText, load_source, publish
from board.records import index_file, ref_names
from board.rows import InboxRow, PostRow, PromotionRow, RefRow
from storage.errors import InvalidFrontmatter, InvalidPath, Unauthorized
from storage.frontmatter import parse_bytes
from storage.site import Site
from tests.people import add_agent, add_bucket, add_files, add_person, caller_of


def _say(site: Site, session: Session, body: str = "hi", handle: str = "blue-heron", **more):
    given = {"folder": "message_board", "frontmatter": {}, "via": "raw", **more}
    return publish(site, session, handle=handle, body=body, **given)


def _fields(row) -> str:
    return repr(sorted(row.model_dump(exclude={"id"}).items()))


def test_a_record_is_a_stamped_file_with_the_servers_keys_first(site: Site, session: Session) -> None:
    head = {"agent": "eve", "title": "T", "rank": 1, "via": "x", "n": 2.5, "verification": "valid", "proof": "yes"}
    done = _say(site, session, frontmatter=head)
    assert done.path == "message_board/20261129-120000-000_blue-heron.md"
    document = parse_bytes(site.buckets(session).read(site.central, done.path))
    assert list(document.frontmatter.items()) == [
        ("agent", "blue-heron"),
        ("timestamp", "2026-11-29 12:00 UTC"),
        ("via", "raw"),
        ("title", "T"),
        ("n", 2.5),
    ]
    assert done.row.frontmatter == document.frontmatter


def test_frozen_and_backward_clocks_still_give_rising_names(site: Site, session: Session, clock) -> None:
    names = [_say(site, session).filename, _say(site, session, handle="aaa").filename]
    clock.forward(hours=-3)
    names += [_say(site, session).filename, _say(site, session, folder="results").filename]
    clock.forward(hours=4)
    names.append(_say(site, session).filename)
    assert names == sorted(set(names))
    assert names[-1].startswith("20261129-130000-000_")


def test_a_post_comes_after_an_old_import_of_the_same_second(site: Site, session: Session) -> None:
    old = "20261129-120000_zoe_0a1b2c3d.md"
    index_file(session, f"message_board/{old}", b"old")
    assert _say(site, session).filename > old


def test_copies_are_byte_identical(site: Site, session: Session) -> None:
    done = _say(site, session, inbox=["bob", "human-ada"], broadcast=True)
    buckets = site.buckets(session)
    digests = {file.digest for file in buckets.list(site.central) if file.path.endswith(done.filename)}
    assert len(digests) == 1
    assert {row.handle for row in session.exec(select(InboxRow))} == {"bob", "human-ada", "*"}
    assert buckets.stat(site.central, f"broadcasts/{done.filename}") is not None


def test_a_thread_is_that_of_the_first_ref(site: Site, session: Session) -> None:
    root = _say(site, session)
    reply = _say(site, session, frontmatter={"refs": [root.filename]})
    deep = _say(site, session, frontmatter={"refs": f"{reply.filename}, {root.filename}"})
    lost = _say(site, session, frontmatter={"refs": "20200101-000000-000_nobody.md"})
    assert [row.row.thread for row in (root, reply, deep)] == [root.filename] * 3
    assert lost.row.thread == lost.filename
    targets = session.exec(select(RefRow.target).where(RefRow.filename == deep.filename).order_by(RefRow.position))
    assert list(targets) == [reply.filename, root.filename]


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (None, []),
        (5, []),
        ("20261129-120000-000_a.md", ["20261129-120000-000_a.md"]),
        ("20261129-120000-000_a", ["20261129-120000-000_a.md"]),
        ("message_board/20261129-120000-000_a.md, `20261129-120000_b_01234567.md`",
         ["20261129-120000-000_a.md", "20261129-120000_b_01234567.md"]),
        (["20261129-120000-000_a.md", "20261129-120000-000_a.md", 7, "nonsense"], ["20261129-120000-000_a.md"]),
        ("20269999-120000-000_a.md", []),
    ],
)  # fmt: skip
def test_refs_are_read_in_every_form(value, names) -> None:
    assert ref_names(value) == names


def test_rows_rebuilt_from_the_files_equal_the_live_ones(site: Site, session: Session) -> None:
    token = add_person(site, session, "ada")
    add_agent(site, session, "blue-heron", token)
    add_files(site, session, "blue-heron", {"m.md": "---\ntitle: T\n---\nBody"})
    source = load_source(site, session, caller_of(site, session, token), f"{site.scratch('blue-heron').uri}/m.md")
    root = _say(site, session, body="root", inbox=["bob"], broadcast=True)
    head = {**source.document.frontmatter, "refs": root.filename}
    _say(site, session, "reply", frontmatter=head, via="bucket", dedup=source.dedup)

    def dump() -> dict:
        tables = (PostRow, RefRow, InboxRow, PromotionRow)
        rows = {table: session.exec(select(table)).all() for table in tables}
        return {table: sorted(map(_fields, found)) for table, found in rows.items()}

    live = dump()
    for table in (PostRow, RefRow, InboxRow, PromotionRow):
        for row in session.exec(select(table)):
            session.delete(row)
    session.flush()
    files = site.buckets(session).list(site.central)
    for file in sorted(files, key=lambda file: file.path.rpartition("/")[2]):
        index_file(session, file.path, site.buckets(session).read(site.central, file.path))
    session.flush()
    assert dump() == live
    assert all(live.values())


def test_the_same_bytes_are_promoted_once(site: Site, session: Session) -> None:
    first = _say(site, session, dedup=("hf://buckets/race/tiny-blue-heron/m.md", "d1"))
    with pytest.raises(AlreadyPromoted) as refusal:
        _say(site, session, dedup=("hf://buckets/race/tiny-blue-heron/m.md", "d1"))
    assert refusal.value.hint == first.filename
    _say(site, session, dedup=("hf://buckets/race/tiny-blue-heron/m.md", "d2"))


def test_a_bucket_promotes_twenty_at_once_and_sixty_a_minute(site: Site, session: Session, clock) -> None:
    source = "hf://buckets/race/tiny-blue-heron/m.md"
    for burst in range(3):
        for number in range(20):
            _say(site, session, dedup=(source, f"{burst} {number}"))
        with pytest.raises(RateLimited) as refusal:
            _say(site, session, dedup=(source, "more"))
        if burst < 2:
            assert refusal.value.retry_after_s == 10
            clock.forward(seconds=10)
    assert refusal.value.retry_after_s == 40
    _say(site, session, dedup=("hf://buckets/race/tiny-red-kettle/m.md", "more"))
    clock.forward(seconds=40)
    _say(site, session, dedup=(source, "more"))


@pytest.mark.parametrize("body", ["a\0b", "x" * 300_000])
def test_a_body_that_cannot_be_stored_leaves_nothing(site: Site, session: Session, body: str) -> None:
    with pytest.raises((UnstorableText, RecordTooLarge)):
        _say(site, session, body)
    assert site.buckets(session).list(site.central) == []
    assert session.exec(select(PostRow)).all() == []


def test_a_source_must_be_the_callers_own_and_there(site: Site, session: Session) -> None:
    token = add_person(site, session, "ada")
    ada, eve = caller_of(site, session, token), caller_of(site, session, add_person(site, session, "eve"))
    add_agent(site, session, "blue-heron", token)
    add_bucket(site, session, "fresh", owner="ada")
    files = {"big.md": "x" * 262_145, "bad.md": "---\na: [\n---\n", "ok.md": "fine"}
    add_files(site, session, "blue-heron", files)
    heron = site.scratch("blue-heron").uri
    for caller, source, expected in (
        (ada, "https://x.org/a", InvalidPath),
        (ada, f"{heron}/../a.md", InvalidPath),
        (ada, f"{heron}//a.md", InvalidPath),
        (ada, heron, InvalidPath),
        (ada, "hf://buckets/race/tiny-Blue-Heron/ok.md", InvalidPath),
        (ada, f"{site.central.uri}/README.md", BucketNotOwned),
        (ada, f"{site.audit.uri}/audit/x.md", BucketNotOwned),
        (ada, "hf://buckets/other/tiny-blue-heron/ok.md", BucketNotOwned),
        (ada, "hf://buckets/race/other-blue-heron/ok.md", BucketNotOwned),
        (eve, f"{heron}/ok.md", BucketNotOwned),
        (None, f"{heron}/ok.md", Unauthorized),
        (ada, f"{site.scratch('fresh').uri}/ok.md", NotRegistered),
        (ada, f"{site.scratch('nobody').uri}/ok.md", NotRegistered),
        (ada, f"{heron}/none.md", SourceNotFound),
        (ada, f"{heron}/big.md", RecordTooLarge),
        (ada, f"{heron}/bad.md", InvalidFrontmatter),
    ):
        with pytest.raises(expected):
            load_source(site, session, caller, source)
    assert load_source(site, session, ada, f"{heron}/ok.md").document.body == "fine"


def test_a_missing_bucket_of_ones_own_agent_says_how_to_make_it(site: Site, session: Session) -> None:
    from agents.rows import AgentRow

    ada = caller_of(site, session, add_person(site, session, "ada"))
    eve = caller_of(site, session, add_person(site, session, "eve"))
    row = {"model": "", "harness": "", "tools": [], "agent_bucket": "", "joined": "", "content_digest": ""}
    session.add(AgentRow(agent_id="gone", hf_user="ada", **row))
    source = f"{site.scratch('gone').uri}/m.md"
    with pytest.raises(BucketMissing) as refusal:
        load_source(site, session, ada, source)
    assert refusal.value.hint == "hf buckets create race/tiny-gone"
    with pytest.raises(BucketNotOwned):
        load_source(site, session, eve, source)
