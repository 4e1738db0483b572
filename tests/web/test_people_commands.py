"""An operator runs accounts, tokens and sessions from the command line."""

import getpass
import os
from pathlib import Path

import pytest
from sqlmodel import col, select
from typer.testing import CliRunner

from agents.accounts import UserNotFound
from agents.rows import AuditRow
from agents.tokens import TokenNotFound
from storage.database import reading
from storage.settings import Settings
from storage.site import open_site
from web.cli import app


@pytest.fixture
def place(tmp_path: Path, challenge_file: Path) -> list[str]:
    return ["--data", str(tmp_path / "data"), "--challenge", str(challenge_file)]


def test_people_are_run_from_the_command_line(place: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    def paddock(*arguments: str) -> str:
        done = CliRunner().invoke(app, [*arguments, *place])
        if done.exception:
            raise done.exception
        return done.output + capsys.readouterr().out

    paddock("user", "add", "ada", "--operator")
    first = paddock("token", "add", "ada", "--label", "laptop", "--scope", "read", "--days", "3").strip()
    second = paddock("token", "rotate", first).strip()
    with pytest.raises(TokenNotFound):
        paddock("token", "rotate", first)
    listed = paddock("token", "list", "ada")
    assert "laptop" in listed
    assert first not in listed
    assert second not in listed
    assert "/signin/link/" in paddock("user", "link", "ada")
    assert "0 sessions of ada" in paddock("session", "end", "ada")
    assert "visitor" in paddock("user", "role", "ada", "visitor")
    assert "ada  visitor" in paddock("user", "list")
    for command in (("user", "link", "ada"), ("user", "link", "eve"), ("token", "add", "ada")):
        with pytest.raises(UserNotFound):
            paddock(*command)


def test_whatever_a_command_writes_down_it_is_the_system_that_did_it_in_somebodys_shell(
    place: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "board" / "agents").mkdir(parents=True)
    for command in (
        ("user", "add", "ada"),
        ("user", "role", "ada", "organizer"),
        ("user", "link", "ada"),
        ("token", "add", "ada"),
        ("session", "end", "ada"),
        ("quota", "set", "human-ada", "bucket_files", "9", "--why", "Few."),
        ("quota", "reset", "human-ada", "bucket_files", "--why", "Many."),
        ("import", str(tmp_path / "board")),
        ("generation", "--new"),
        ("fsck", "--repair"),
    ):
        done = CliRunner().invoke(app, [*command, *place])
        assert done.exit_code == 0, (command, done.output, done.exception)

    def nobody() -> str:
        raise KeyError("no such user")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert CliRunner().invoke(app, ["user", "add", "eve", *place]).exit_code == 0
    site = open_site(Settings(data=tmp_path / "data", challenge=Path(place[3])))
    with reading(site.engine) as session:
        lines = session.exec(select(AuditRow.actor, AuditRow.proof, AuditRow.origin).order_by(col(AuditRow.id))).all()
    site.engine.dispose()
    monkeypatch.undo()
    here = ("system", "server:command-line", f"shell:{getpass.getuser()}")
    assert list(lines) == [*[here] * 10, (*here[:2], f"shell:{os.getuid()}")]
