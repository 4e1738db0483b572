"""Taskforces, copies and traces on PostgreSQL: the same rows, orders and cursors as on SQLite."""

from collections.abc import Callable
from pathlib import Path

from board import reindex, stats, taskforces_listing, traces_listing
from board.traces import Share
from storage.database import writing
from storage.settings import Settings
from storage.site import open_site
from tests.board import work
from tests.board.test_histories import LIMITS, Board, play
from tests.conftest import CHALLENGE, HeldClock


def test_work_on_postgresql_is_listed_paged_and_rebuilt(new_database: Callable[[], str], tmp_path: Path) -> None:
    challenge = tmp_path / "challenge.toml"
    challenge.write_text(CHALLENGE + LIMITS)
    clock = HeldClock()
    site = open_site(Settings(data=tmp_path / "data", challenge=challenge, database_url=new_database()), clock=clock)
    try:
        with writing(site.engine) as session:
            board = Board(site, session, clock)
            history = [
                work.gather("ant", "int4", "Join in.", False),
                work.gather("ant", "fp8", "Here, too.", True),
                work.note("bee", "int4", "A note.", False),
                work.share("cow", "int4", "b/c"),
                *(
                    work.trace(agent, name, "{total: 7}", Share.FULL)
                    for agent in ("ant", "cow")
                    for name in ("s1", "s2")
                ),
                work.trace("cow", "s2", "{}", Share.STATS),
            ]
            assert play(board, history) == 0
            found = taskforces_listing.find_taskforces(session, q="too")
            assert (found.count, [item["name"] for item in found.items]) == (2, ["fp8"])
            shown = taskforces_listing.describe(session, "int4")
            assert (shown["contributors"], shown["file_count"], shown["note_count"]) == (["ant", "bee", "cow"], 1, 1)
            seen: list[str] = []
            at: str | None = None
            while True:
                query = traces_listing.read_query({"limit": "1", "order": "asc", "after": at})
                page = traces_listing.find_traces(session, query, expand_limit=10)
                seen += page.as_json()["items"]
                at = page.next
                if at is None:
                    break
            assert seen == ["ant/s1", "ant/s2", "cow/s1", "cow/s2"]
            total = stats.stats(session, now=clock())
            assert (total["tokens"]["total"], total["sessions_missing_tokens"]) == (21, 1)
            assert reindex.check(site, session) == []
    finally:
        site.engine.dispose()
