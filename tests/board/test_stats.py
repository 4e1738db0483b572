"""Sums over published sessions, made by the database: exact, grouped alike on both engines, whatever its time zone."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlmodel import Session

from board.rows import TraceRow
from board.stats import stats, summary
from board.traces_manifest import MOST_TOKENS
from storage.database import make_engine, migrate

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """A migrated, empty database; PostgreSQL's session is not in UTC."""
    is_postgres = request.param == "postgresql"
    make: Callable[[], str] = request.getfixturevalue("new_database") if is_postgres else lambda: ""
    engine = make_engine(make() or f"sqlite:///{tmp_path / 'stats.db'}")
    migrate(engine)
    with Session(engine.execution_options(paddock_writes=True)) as session:
        if is_postgres:
            session.connection().execute(text("SET TIME ZONE 'America/Los_Angeles'"))
        yield session
        session.rollback()
    engine.dispose()


def add(session: Session, number: int, *, agent: str = "ant", model: str = "m", **fields: object) -> None:
    fixed = {"share": "stats", "completeness": "partial", "frontmatter": {}, "body": "b", "haystack": "h"}
    row = {"agent": agent, "session_id": f"s{number}", "harness": "h", "model": model, "content_digest": ""}
    session.add(TraceRow(**({"promoted_at": NOW} | fixed | row | fields)))


def test_nothing_published_is_no_sum(database: Session) -> None:
    told = stats(database, now=NOW)
    assert (told["sessions_counted"], told["sessions_missing_tokens"], told["cost_usd"]) == (0, 0, None)
    assert (told["by_model"], told["by_agent"], told["by_day"]) == ({}, {}, {})
    assert set(told["tokens"].values()) == {0}
    assert summary(database) is None


def test_what_is_unknown_is_counted_apart_and_groups_are_by_name(database: Session) -> None:
    add(database, 1, total_tokens=5, input_tokens=3, cost_usd=0.5)
    add(database, 2, model="", total_tokens=7, cost_usd=0.25)
    add(database, 3, agent="bee", model="unknown")
    add(database, 4, agent="cow", total_tokens=0)
    told = stats(database, now=NOW)
    assert (told["tokens"]["total"], told["tokens"]["input"], told["tokens"]["output"]) == (12, 3, 0)
    assert (told["missing"]["total"], told["missing"]["input"], told["missing"]["output"]) == (1, 3, 4)
    assert (told["sessions_counted"], told["sessions_missing_tokens"], told["agents_reporting"]) == (3, 1, 2)
    assert told["cost_usd"] == 0.75
    assert list(told["by_agent"]) == ["ant", "bee", "cow"]
    assert told["by_agent"]["bee"] == {"total_tokens": 0, "sessions_counted": 0, "sessions_missing_tokens": 1}
    assert told["by_model"] == {
        "m": {"total_tokens": 5, "sessions_counted": 2, "sessions_missing_tokens": 0},
        "unknown": {"total_tokens": 7, "sessions_counted": 1, "sessions_missing_tokens": 1},
    }
    assert summary(database) == {"total_tokens": 12, "sessions_counted": 3, "agents_reporting": 2}


def test_a_day_is_utcs_and_a_sessions_beginning_comes_before_its_publication(database: Session) -> None:
    late = datetime(2026, 11, 28, 23, 59, 59, 999_000, tzinfo=UTC)
    add(database, 1, started_at=late, total_tokens=1)
    add(database, 2, started_at=late + timedelta(milliseconds=1), total_tokens=2)
    add(database, 3, started_at=datetime(2026, 11, 29, 1, tzinfo=timezone(timedelta(hours=5))), total_tokens=4)
    add(database, 4, promoted_at=datetime(2026, 12, 1, 0, 30, tzinfo=UTC), total_tokens=8)
    days = {day: group["total_tokens"] for day, group in stats(database, now=NOW)["by_day"].items()}
    assert days == {"2026-11-28": 5, "2026-11-29": 2, "2026-12-01": 8}


def test_sums_beyond_a_databases_whole_numbers_are_exact(database: Session) -> None:
    for number in range(10_000):
        add(database, number, total_tokens=MOST_TOKENS - (number == 0))
    database.flush()
    assert 10_000 * MOST_TOKENS > 2**63
    assert stats(database, now=NOW)["by_agent"]["ant"]["total_tokens"] == 10_000 * MOST_TOKENS - 1
    told = summary(database)
    assert told is not None
    assert told["total_tokens"] == 10_000 * MOST_TOKENS - 1


def test_the_database_adds_up_and_no_session_is_read(database: Session) -> None:
    add(database, 1, total_tokens=5)
    database.flush()
    seen: list[str] = []
    connection = database.connection()
    event.listen(connection, "before_cursor_execute", lambda *given: seen.append(given[2]))
    stats(database, now=NOW)
    summary(database)
    assert seen
    assert [each for each in seen if "sum(" not in each and "count(" not in each and "LIMIT" not in each] == []
