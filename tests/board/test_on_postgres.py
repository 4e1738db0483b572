"""What only PostgreSQL can get wrong: writers that overlap, and the same history on the other database."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from starlette.testclient import TestClient

from agents import accounts
from agents.rows import UserRow
from board import events, moderation_files, moderation_log, reindex, taskforces_listing
from board.search import search
from board.stats import stats
from board.traces import Share
from board.verdicts import State, Verdict
from storage.database import reading, writing
from storage.settings import Settings
from storage.site import Site, open_site
from tests.board import test_histories as histories
from tests.board import work
from tests.conftest import CHALLENGE, HeldClock, eventually
from tests.people import add_agent, add_person
from web.app import create_app


def open_on(url: str, tmp_path: Path, clock: HeldClock) -> Site:
    challenge = tmp_path / "challenge.toml"
    challenge.write_text(CHALLENGE + histories.LIMITS)
    return open_site(Settings(data=tmp_path / "data", challenge=challenge, database_url=url), clock=clock)


def somebody_waits(site: Site) -> bool:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with reading(site.engine) as looking:  # a transaction sees one state of it, so each look is a new one
        return bool(looking.connection().exec_driver_sql(asked).scalar())


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
        work.gather("ant", "int4", "Join in.", False),
        work.gather("bee", "fp8", "Me too.", False),
        histories.tick(60),
        work.note("bee", "int4", "A note.", False),
        work.share("cow", "int4", "b/c"),
        work.trace("cow", "s1", "{total: 7}", Share.FULL),
        *(work.moderate("ant", "int4", index, "hide") for index in range(9)),
        work.moderate("ant", "int4", 0, "unhide"),
    ]
    with writing(site.engine) as session:
        board = histories.Board(site, session, clock)
        assert histories.play(board, history) == 0
        assert reindex.check(site, session) == []
        assert [hit.name for hit in search(session, "模型 needle", kind=None, limit=9).hits] == [board.posted[0]]
        assert search(session, "heron", kind=None, limit=9).hits == ()  # its registration is hidden
        told = taskforces_listing.find_taskforces(session)
        assert [(item["name"], item["note_count"], item["file_count"]) for item in told.items] == [
            ("int4", 1, 1),
            ("fp8", 0, 0),
        ]
        assert stats(session, now=clock())["by_model"]["unknown"]["total_tokens"] == 7
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

    with writing(site.engine) as session:
        events.record(session, events.Kind.JOB, {"n": 1}, now=clock())
        other = threading.Thread(target=second)
        other.start()
        eventually(lambda: somebody_waits(site), what="the second writer's waiting")
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


def test_a_registration_beside_its_hiding_is_refused(
    new_database: Callable[[], str], tmp_path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was withheld before it came would else be all that can be brought back."""
    site = open_on(new_database(), tmp_path, clock)
    with writing(site.engine) as session:
        ann, oda = (add_person(site, session, name, is_organizer=name == "oda") for name in ("ann", "oda"))
        add_agent(site, session, "ant", ann)
    said = {"agent_id": "ant", "model": "another", "harness": "h", "force": True}
    answers: list[Future[Response]] = []

    def withhold_beside_it(*given: Any) -> None:
        moderation_log.withhold(*given)
        headers = {"Authorization": f"Bearer {ann}"}
        answers.append(pool.submit(http.post, "/v1/agents/register", json=said, headers=headers))
        eventually(lambda: answers[0].done() or somebody_waits(site), what="the registration's waiting")

    monkeypatch.setattr(moderation_files, "withhold", withhold_beside_it)
    with TestClient(create_app(site)) as http, ThreadPoolExecutor(1) as pool:
        hiding = {"target": "agents/ant.md", "reason": "Spam."}
        assert http.post("/v1/moderation:hide", json=hiding, headers={"Authorization": f"Bearer {oda}"}).is_success
        assert answers[0].result(30).json()["error"]["code"] == "FILE_HIDDEN"
    site.engine.dispose()
