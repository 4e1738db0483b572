"""The audit log's files hold each line once, whoever is killed when."""

import json
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from sqlmodel import Session

from agents import audit, audit_files
from storage.database import reading, writing
from storage.site import Site
from tests.conftest import HeldClock

ROOT = Path(__file__).resolve().parents[2]


def note(site: Site, *targets: str) -> None:
    with writing(site.engine) as session:
        for target in targets:
            audit.record(session, caller=None, action="messages.post", target=target, now=site.clock(), origin="::1")


def lines(site: Site, month: str) -> list[dict[str, object]]:
    with reading(site.engine) as session:
        text = site.buckets(session).read(site.audit, f"audit/{month}.jsonl")
    return [json.loads(line) for line in text.splitlines()]


def flush(site: Site) -> int:
    with writing(site.engine) as session:
        return audit_files.flush(site, session)


def test_each_write_is_one_line_of_its_month_in_order(site: Site, clock: HeldClock) -> None:
    note(site, "a", "b")
    assert flush(site) == 2
    note(site, "c")
    clock.forward(days=3)
    note(site, "d")
    assert (flush(site), flush(site)) == (2, 0)
    november = lines(site, "202611")
    assert [line["target"] for line in november] == ["a", "b", "c"]
    assert [line["target"] for line in lines(site, "202612")] == ["d"]
    assert november[0] == {
        "id": 1,
        "at": "2026-11-29T12:00:00.000Z",
        "actor": "",
        "proof": "none",
        "origin": "::1",
        "action": "messages.post",
        "target": "a",
    }


def test_a_flush_that_is_cut_off_has_written_nothing_and_loses_nothing(site: Site) -> None:
    note(site, "a")
    flush(site)
    note(site, "b")

    def cut_off() -> None:
        with writing(site.engine) as session:
            assert audit_files.flush(site, session) == 1
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            cut_off()
    assert [line["target"] for line in lines(site, "202611")] == ["a"]
    assert flush(site) == 1
    assert [line["target"] for line in lines(site, "202611")] == ["a", "b"]


def test_the_log_is_found_by_who_what_and_when_and_pages_join_up(
    site: Site, session: Session, clock: HeldClock
) -> None:
    for number in range(7):
        action = "messages.post" if number % 2 else "results.post"
        audit.record(session, caller=None, action=action, target=str(number), now=clock())
        clock.forward(minutes=1)
    session.flush()
    start = clock() - timedelta(minutes=7)

    def targets(**asked: object) -> list[str]:
        found = audit.find(session, audit.AuditQuery(**asked))  # type: ignore[arg-type]
        return [row.target for row in found.rows]

    assert targets() == list("6543210")
    assert targets(action="messages.post") == list("531")
    assert targets(actor="ada") == []
    assert targets(since=start + timedelta(minutes=2), until=start + timedelta(minutes=3)) == ["3", "2"]
    seen, page = [], audit.find(session, audit.AuditQuery(limit=3))
    while True:
        seen += [row.target for row in page.rows]
        if page.next is None:
            break
        page = audit.find(session, audit.AuditQuery(limit=3, before=page.next))
    assert seen == list("6543210")
    assert (page.count, page.matched) == (7, 7)


@pytest.mark.parametrize("when", ["1", "3", "commit"])
def test_a_process_killed_while_it_writes_up_has_written_nothing_and_each_line_comes_once(
    site: Site, when: str
) -> None:
    note(site, "a")
    flush(site)
    note(site, *"bcdef")
    paths = [str(site.settings.data), str(site.settings.challenge)]
    command = [sys.executable, "-m", "tests.agents.flush_and_die", *paths, when]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert [line["target"] for line in lines(site, "202611")] == ["a"]
    assert flush(site) == 5
    assert [line["target"] for line in lines(site, "202611")] == list("abcdef")


def test_a_long_file_waits_for_more_lines_but_for_an_hour_at_most(site: Site, clock: HeldClock) -> None:
    def is_due() -> bool:
        with reading(site.engine) as session:
            return audit_files.is_due(site, session)

    assert not is_due()
    note(site, "a")
    assert is_due()
    note(site, *(f"{number}{'x' * 100}" for number in range(1000)))
    flush(site)
    note(site, "b")
    assert not is_due()
    clock.forward(minutes=61)
    assert is_due()
    note(site, *map(str, range(9)))
    clock.forward(minutes=-61)
    assert is_due()
