import json
from collections.abc import Callable

import pytest
from sqlmodel import Session, select

from agents.rows import AgentRow
from board import leaderboard, reindex, results, verdicts, verification_status
from board.leaderboard_query import Query
from board.rows import InboxRow, PostRow, ResultRow
from board.verdicts import State, Verdict
from storage.buckets import Delete, Put
from storage.site import Site
from tests.board import racers

GOOD = Verdict(state=State.VALID, measured=480.0, n=2, hardware="cpu")


def put(site: Site, session: Session, path: str, data: bytes) -> None:
    site.buckets(session).apply(site.central, [Put(path, data)])


def furnish(site: Site, session: Session) -> tuple[str, str]:
    """Post two results of a registered agent and verify the first; return their names."""
    racers.enlist(site, session, "a")
    first = racers.post(site, session, "a", "r1.md").filename
    second = racers.post(site, session, "a", "r2.md", method="other").filename
    results.record_verdict(site, session, first, GOOD)
    return first, second


def test_nothing_rebuilds_to_nothing(site: Site, session: Session) -> None:
    assert reindex.check(site, session) == []
    report = reindex.rebuild(site, session)
    assert (report.indexed, report.bad) == ({}, [])


def test_a_lived_in_board_agrees_with_its_files(site: Site, session: Session) -> None:
    furnish(site, session)
    assert reindex.check(site, session) == []


def test_rebuilding_from_files_alone_gives_back_every_row(site: Site, session: Session) -> None:
    first, second = furnish(site, session)
    for table in reindex.TABLES:
        for row in session.exec(select(table)).all():
            session.delete(row)
    session.flush()
    report = reindex.rebuild(site, session)
    assert (dict(report.indexed), report.bad) == ({"agents": 1, "results": 2, "verdicts": 1}, [])
    assert reindex.check(site, session) == []
    row = results.get_row(session, first)
    assert (row.verification, row.measured, row.hardware) == ("valid", 480.0, "cpu")
    assert results.get_row(session, second).verification == "pending"
    assert session.get_one(AgentRow, "a").hf_user == "ann"


def lose_a_post(session: Session, name: str) -> None:
    session.delete(session.exec(select(PostRow).where(PostRow.filename == name)).one())


def alter_a_measurement(session: Session, name: str) -> None:
    session.get_one(ResultRow, name).measured = 999.0


def alter_a_body(session: Session, name: str) -> None:
    session.exec(select(PostRow).where(PostRow.filename == name)).one().body = "forged"


def invent_a_delivery(session: Session, name: str) -> None:
    session.add(InboxRow(handle="a", filename=name))


@pytest.mark.parametrize(
    ("tamper", "sentence"),
    [
        (lose_a_post, "posts (results, {name}): the files give it, the rows lack it"),
        (alter_a_measurement, "results ({name}): measured is 999.0 in the rows and 480.0 in the files"),
        (alter_a_body, "posts (results, {name}): body is 'forged' in the rows and 'See above.' in the files"),
        (invent_a_delivery, "inbox (a, {name}): the rows have it, the files don't give it"),
    ],
)
def test_a_row_that_drifted_is_named_and_left_as_it_is(
    site: Site, session: Session, tamper: Callable[[Session, str], None], sentence: str
) -> None:
    name, _ = furnish(site, session)
    tamper(session, name)
    told = [sentence.format(name=name)]
    assert reindex.check(site, session) == told
    assert reindex.check(site, session) == told  # the first check mended nothing
    reindex.rebuild(site, session)
    assert reindex.check(site, session) == []


def test_bad_files_are_reported_and_the_rest_is_indexed(site: Site, session: Session) -> None:
    first, second = furnish(site, session)
    put(site, session, "results/20260101-000000-000_b.md", b"---\ntps: .nan\n---\n")
    put(site, session, "results/20260101-000000-001_b.md", b"\xff\xfe")
    put(site, session, "results/20260101-000000-002_b.md", b"---\ntps: 5\n---\n")
    put(site, session, "results/notes.md", b"hello")
    put(site, session, "message_board/20260101-000000-003_b.md", b"---\n&a [*a]\n---\n")
    put(site, session, "agents/b.md", b"---\n: : :\n---\n")
    put(site, session, verdicts.path_of(first), b'{"state": "valid", "measured": NaN}')
    put(site, session, "verdicts/20200101-000000-000_b/verdict.json", verdicts.to_bytes(GOOD))
    report = reindex.rebuild(site, session)
    assert sorted(line.partition(":")[0] for line in report.bad) == [
        "agents/b.md",
        "message_board/20260101-000000-003_b.md",
        "results/20260101-000000-000_b.md",
        "results/20260101-000000-001_b.md",
        "results/20260101-000000-002_b.md",
        "results/notes.md",
        "verdicts/20200101-000000-000_b/verdict.json",
        f"verdicts/{first.removesuffix('.md')}/verdict.json",
    ]
    assert reindex.check(site, session) == []
    board = leaderboard.show(session, site.challenge, Query(best_per_agent=False), now=site.clock())
    assert {row.filename for row in board.rows} == {first, second}
    assert (board.excluded["malformed"], board.results_considered) == (3, 5)
    unreadable = results.get_row(session, first)
    assert (unreadable.verification, unreadable.reason) == ("pending", "Its verdict can't be read.")


def test_an_imports_states_come_from_its_map_and_missing_entries_are_pending(site: Site, session: Session) -> None:
    names = [f"20260101-00000{index}-000_old.md" for index in range(4)]
    for name in names:
        put(site, session, f"results/{name}", racers.result_text().encode())
    states = {names[0]: "valid", names[1]: "invalid", names[2]: "splendid", "gone.md": "valid"}
    put(site, session, verification_status.PATH, json.dumps(states).encode())
    reindex.rebuild(site, session)
    assert [results.get_row(session, name).verification for name in names] == ["valid", "invalid", "pending", "pending"]
    stored = json.loads(site.buckets(session).read(site.central, verification_status.PATH))
    assert stored == dict(zip(names, ["valid", "invalid", "pending", "pending"], strict=True))
    assert reindex.check(site, session) == []


def test_old_names_with_a_stamp_to_the_second_are_indexed(site: Site, session: Session) -> None:
    put(site, session, "results/20260101-000000_old-one_0123abcd.md", racers.result_text().encode())
    assert reindex.rebuild(site, session).bad == []
    assert session.exec(select(ResultRow.agent)).one() == "old-one"


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"{" * 100_000])
def test_a_broken_map_of_states_is_reported_and_written_anew(site: Site, session: Session, data: bytes) -> None:
    first, second = furnish(site, session)
    put(site, session, verification_status.PATH, data)
    assert reindex.check(site, session) == [
        f"{verification_status.PATH}: the file does not list the states that the rows have"
    ]
    report = reindex.rebuild(site, session)
    assert [line.partition(":")[0] for line in report.bad] == ([verification_status.PATH] if data else [])
    assert verification_status.current(session) == {first: "valid", second: "pending"}
    assert reindex.check(site, session) == []


def test_a_result_whose_file_is_gone_is_gone_after_a_rebuild(site: Site, session: Session) -> None:
    first, second = furnish(site, session)
    site.buckets(session).apply(site.central, [Delete(f"results/{second}")])
    assert len(reindex.check(site, session)) == 4  # the post, the result, the promotion and what search knows of it
    reindex.rebuild(site, session)
    assert verification_status.current(session) == {first: "valid"}
    assert reindex.check(site, session) == []
