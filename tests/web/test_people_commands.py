"""An operator runs accounts, tokens and sessions from the command line."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from agents.accounts import UserNotFound
from agents.tokens import TokenNotFound
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
