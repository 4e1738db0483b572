"""What only PostgreSQL can get wrong: writers that overlap, and the same history on the other database."""

import threading
from collections.abc import Callable
from pathlib import Path

from agents import accounts
from agents.rows import UserRow
from board import events, reindex
from board.search import search
from board.verdicts import State, Verdict
from storage.database import reading, writing
from storage.settings import Settings
from storage.site import Site, open_site
from tests.board import test_histories as histories
from tests.conftest import CHALLENGE, HeldClock, eventually


def open_on(url: str, tmp_path: Path, clock: HeldClock) -> Site:
    challenge = tmp_path / "challenge.toml"
    challenge.write_text(CHALLENGE + histories.LIMITS)
    return open_site(Settings(data=tmp_path / "data", challenge=challenge, database_url=url), clock=clock)


def test_a_history_rebuilds_there_as_it_does_here(
    new_database: Callable[[], str], tmp_path: Path, clock: HeldClock
) -> None:
    site = open_on(new_database(), tmp_path, clock)
    history = [
        histories.say("ant", "For @bee, 模型 and a needle.", None, True),
        histories.say("bee", "An answer.", 0, False),
        histories.race("cow", "507.3", "agent-run", False),
        histories.verdict(0, Verdict(state=State.VALID, measured=480.0)),
        histories.withdraw("ant", 1, "hide"),
        histories.withdraw("ant", 2, "hide"),
        histories.supersede("bee", 1),
        histories.withdraw("ant", 2, "unhide"),
        histories.withdraw("bee", 1, "retract"),
        histories.take_in(5),
        histories.register("cow", "a heron's model"),
    ]
    with writing(site.engine) as session:
        board = histories.Board(site, session, clock)
        assert histories.play(board, history) == 0
        assert reindex.check(site, session) == []
        assert [hit.name for hit in search(session, "模型 needle", kind=None, limit=9).hits] == [board.posted[0]]
        assert [hit.name for hit in search(session, "heron", kind=None, limit=9).hits] == ["cow"]
        reindex.rebuild(site, session)
        assert reindex.check(site, session) == []
    site.engine.dispose()


def test_an_event_is_never_committed_behind_a_later_one(
    new_database: Callable[[], str], tmp_path: Path, clock: HeldClock
) -> None:
    site = open_on(new_database(), tmp_path, clock)
    done = threading.Event()

    def second() -> None:
        with writing(site.engine) as session:
            events.record(session, events.Kind.JOB, {"n": 2}, now=clock())
        done.set()

    def waits_for_its_turn() -> bool:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        with reading(site.engine) as looking:  # a transaction sees one state of it, so each look is a new one
            return bool(looking.connection().exec_driver_sql(asked).scalar())

    with writing(site.engine) as session:
        events.record(session, events.Kind.JOB, {"n": 1}, now=clock())
        other = threading.Thread(target=second)
        other.start()
        eventually(waits_for_its_turn, what="the second writer's waiting")
        assert not done.is_set()
    other.join(30)
    with reading(site.engine) as session:
        assert [row.data["n"] for row in events.after(session, 0, limit=9)] == [1, 2]
    site.engine.dispose()


def test_text_sorts_by_its_characters_whatever_the_language_of_the_database(
    new_database: Callable[[], str], tmp_path: Path, clock: HeldClock
) -> None:
    site = open_on(new_database(), tmp_path, clock)
    with writing(site.engine) as session:
        asked = "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = 'public'"
        kinds = session.connection().exec_driver_sql(f"{asked} AND data_type IN ('text', 'character varying')")
        assert kinds.scalars().all() == ["C"]
        assert session.connection().exec_driver_sql("SELECT 'a' < 'B'").scalar()
        for name in ("a", "B", "b-1", "b_1"):
            session.add(UserRow(name=name, created_at=clock()))
        session.flush()
        assert [row.name for row in accounts.everybody(session)] == ["B", "a", "b-1", "b_1"]
    site.engine.dispose()
