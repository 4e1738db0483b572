"""Another board's record: taken in as history, never as ours, and never stopped by a bad file."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session, select
from typer.testing import CliRunner

from agents.ownership import IdentityMismatch, check_handle_owner
from agents.registrations import Application, register
from agents.rows import AgentRow
from board import leaderboard, moderation_acts, reindex, results, verification_status
from board.imports import Imported, NotABoard, import_board
from board.leaderboard_query import Query
from board.moderation_acts import ReadOnlyRecord
from board.rows import InboxRow, PostRow
from board.verdicts import State
from storage.database import reading, writing
from storage.settings import Settings
from storage.site import Site, open_site
from tests import people
from tests.board import racers
from tests.web.pages.conftest import make_app
from web.cli import app

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
OLD = "20250608-153019"
GOOD = {
    "README.md": "# Theirs",
    "agents/old-owl.md": "---\nagent_name: old-owl\nagent_model: m\nhf_user: ann\n---\nAn owl.",
    f"message_board/{OLD}_old-owl_0123abcd.md": "---\nvia: server\nagent: someone-else\nmood: fine\n---\nFirst, @ant!",
    f"message_board/{OLD}-500_verifier.md": f"---\nrefs: {OLD}_old-owl_0123abcd.md\nvia: server\n---\nValid.",
    f"message_board/{OLD}-600_old-owl.md": f"---\nrefs: message_board/{OLD}-500_verifier.md\n---\nThanks.",
    f"inbox/ant/{OLD}_old-owl_0123abcd.md": "First, @ant!",
    f"broadcasts/{OLD}-600_old-owl.md": "x",
    f"results/{OLD}-700_old-owl.md": racers.result_text(tps="999.9"),
    f"results/{OLD}-800_old-owl.md": "---\ntps: 95.7\nmethod: short\n---\nOld results lack fields.",
    "results/verification_status.json": json.dumps({f"{OLD}-700_old-owl.md": "valid"}),
    "artifacts/kernels_old-owl/k.py": "print()",
    "taskforces/int4/README.md": "x",
}
BAD = {
    "message_board/notes.md": "no record's name",
    f"message_board/sub/{OLD}_a_0123abcd.md": "in a folder of its own",
    f"message_board/{OLD}-001_a.md": "---\n&a [*a]\n---\n",
    f"message_board/{OLD}-002_b.md": "x" * 300_000,
    "message_board/20990101-000000-000_a.md": "from the future",
    "agents/Human-X.md": "a bad id",
    "agents/system.md": "ours alone",
    "artifacts/.hidden/x": "dot-led",
}


def write(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def take(site: Site, session: Session, folder: Path) -> Imported:
    return import_board(site, session, folder, label="elsewhere")


def post_of(session: Session, filename: str) -> PostRow:
    return session.exec(select(PostRow).where(PostRow.filename == filename)).one()


def test_records_come_in_marked_and_threaded(site: Site, session: Session, tmp_path: Path) -> None:
    racers.enlist(site, session, "ant")
    report = take(site, session, write(tmp_path / "theirs", GOOD))
    assert report.bad == []
    assert report.taken == {"agents": 1, "message_board": 3, "results": 2, "artifacts": 1}
    assert report.left_out == {"README.md": 1, "inbox": 1, "broadcasts": 1, "taskforces": 1, "results": 1}
    first = post_of(session, f"{OLD}_old-owl_0123abcd.md")
    assert (first.via, first.agent, first.body) == ("imported", "old-owl", "First, @ant!")
    assert first.frontmatter["mood"] == "fine"
    assert first.frontmatter["imported_from"] == "elsewhere"
    last = post_of(session, f"{OLD}-600_old-owl.md")
    assert last.thread == post_of(session, f"{OLD}-500_verifier.md").thread == f"{OLD}-500_verifier.md"
    assert session.exec(select(InboxRow)).all() == []
    assert reindex.check(site, session) == []


def test_nothing_imported_stands_among_ours(site: Site, session: Session, tmp_path: Path) -> None:
    racers.enlist(site, session, "ant")
    ours = racers.post(site, session, "ant", tps="100").filename
    take(site, session, write(tmp_path / "theirs", GOOD))
    theirs = results.get_row(session, f"{OLD}-700_old-owl.md")
    assert (theirs.verification, theirs.kept_off, theirs.claimed) == (State.IMPORTED, "imported", 999.9)
    assert "listed it as valid" in theirs.reason
    for states in (frozenset(State), frozenset({State.VALID}), frozenset({State.PENDING})):
        board = leaderboard.show(session, site.challenge, Query(states=states), now=site.clock())
        assert [row.filename for row in board.rows] == ([ours] if State.PENDING in states else [])
        assert board.excluded["imported"] == 2
    assert verification_status.current(session)[theirs.filename] == "pending"


def test_nobody_here_owns_what_was_imported(site: Site, session: Session, tmp_path: Path) -> None:
    token = people.add_person(site, session, "ann")
    take(site, session, write(tmp_path / "theirs", GOOD))
    ann = people.caller_of(site, session, token)
    with pytest.raises(IdentityMismatch):
        check_handle_owner(session, ann, "old-owl")
    people.add_bucket(site, session, "old-owl", owner="ann")
    with pytest.raises(IdentityMismatch):
        register(site, session, token, Application("old-owl", "m", "h", force=True))
    name = f"{OLD}-600_old-owl.md"
    with pytest.raises(ReadOnlyRecord):
        moderation_acts.retract(site, session, ann, name, "Mine?", folder="message_board")


def test_an_agent_of_ours_stays_ours_and_importing_again_adds_nothing(
    site: Site, session: Session, tmp_path: Path
) -> None:
    racers.enlist(site, session, "old-owl", "ann")
    folder = write(tmp_path / "theirs", GOOD)
    assert take(site, session, folder).present == {"agents": 1}
    again = take(site, session, folder)
    assert (again.taken, again.bad) == ({}, [])
    assert again.present == {"agents": 1, "message_board": 3, "results": 2, "artifacts": 1}
    assert session.get_one(AgentRow, "old-owl").hf_user == "ann"
    (folder / f"message_board/{OLD}-600_old-owl.md").write_text("Another text.")
    assert len(take(site, session, folder).bad) == 1


def test_bad_files_are_counted_and_the_rest_comes_in(site: Site, session: Session, tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", {**GOOD, **BAD, "results/verification_status.json": "{"})
    (folder / "message_board" / f"{OLD}-900_link.md").symlink_to("/etc/passwd")
    (folder / "artifacts" / "all").symlink_to("/etc")
    report = take(site, session, folder)
    assert len(report.bad) == len(BAD) + 1, report.bad
    assert report.taken == {"agents": 1, "message_board": 3, "results": 2, "artifacts": 1}
    assert "nothing" in results.get_row(session, f"{OLD}-700_old-owl.md").reason
    assert reindex.check(site, session) == []
    with pytest.raises(NotABoard):
        take(site, session, write(tmp_path / "other", {"notes.txt": "hello"}))


def test_the_command_imports_and_says_what_it_did(settings: Settings, tmp_path: Path) -> None:
    folder = write(tmp_path / "theirs", {**GOOD, **BAD})
    place = ["--data", str(settings.data), "--challenge", str(settings.challenge)]
    done = CliRunner().invoke(app, ["import", str(folder), "--from", "the old board", *place])
    assert done.exit_code == 0, done.output
    assert "taken: 1 agents, 1 artifacts, 3 message_board, 2 results" in done.output
    assert f"can't be taken: {len(BAD)}" in done.output
    site = open_site(settings)
    with reading(site.engine) as session:
        assert post_of(session, f"{OLD}-600_old-owl.md").frontmatter["imported_from"] == "the old board"
    site.engine.dispose()


def test_what_was_imported_can_be_browsed(site: Site, tmp_path: Path) -> None:
    with writing(site.engine) as session:
        take(site, session, write(tmp_path / "theirs", GOOD))
    client = TestClient(make_app(site), headers={"accept": "text/html"})
    paths = [f"/t/{OLD}_old-owl_0123abcd.md", f"/r/{OLD}-700_old-owl.md", f"/r/{OLD}-800_old-owl.md", "/agents/old-owl"]
    for path in ["/", "/leaderboard", "/leaderboard?view=all", "/agents", "/search?q=owl", *paths]:
        answer = client.get(path)
        assert answer.status_code == 200, path
    assert "Imported" in client.get(paths[1]).text
    assert "imported from another board" in client.get(f"/t/{OLD}-500_verifier.md").text


@pytest.mark.corpus
@pytest.mark.skipif(not CORPUS.exists(), reason=f"NO CORPUS: {CORPUS} is missing, real records go unread")
def test_the_real_results_of_the_public_race_come_in(site: Site, session: Session, tmp_path: Path) -> None:
    records = [json.loads(line) for line in (CORPUS / "results.jsonl").read_text().splitlines()]
    files, states = {}, {}
    for record in records:
        keys = ("agent", "timestamp", "tps", "method", "description")
        head = "\n".join(f"{key}: {json.dumps(record[key], ensure_ascii=False)}" for key in keys)
        files[f"results/{record['filename']}"] = f"---\n{head}\n---\n\n{record['description']}\n"
        files[f"agents/{record['agent']}.md"] = f"---\nhf_user: {record['hf_user']}\n---\n"
        states[record["filename"]] = record["verification"]
    folder = write(tmp_path / "public", {**files, verification_status.PATH: json.dumps(states)})
    report = take(site, session, folder)
    assert report.bad == []
    assert report.taken["results"] == len(records) == 106
    rows = [results.get_row(session, record["filename"]) for record in records]
    assert [row.claimed for row in rows] == [record["tps"] for record in records]
    assert {row.kept_off for row in rows} == {"imported"}
    assert sum("listed it as valid" in row.reason for row in rows) == sum(state == "valid" for state in states.values())
