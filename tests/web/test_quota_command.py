"""`paddock quota show|set|reset`, as an operator types it."""

import getpass
from pathlib import Path

import pytest
from click.testing import Result
from sqlmodel import select
from typer.testing import CliRunner

from agents.rows import AuditRow
from storage.database import reading, writing
from storage.errors import PaddockError
from storage.settings import Settings
from storage.site import open_site
from tests.people import add_agent, add_person
from tests.web.test_cli import paddock
from web.cli import app
from web.quota_desk import BadLimit, read_limit


@pytest.fixture
def place(tmp_path: Path, challenge_file: Path) -> list[str]:
    site = open_site(Settings(data=tmp_path / "data", challenge=challenge_file))
    with writing(site.engine) as session:
        add_agent(site, session, "blue-heron", add_person(site, session, "ada"))
    site.engine.dispose()
    return ["--data", str(tmp_path / "data"), "--challenge", str(challenge_file)]


def run(*arguments: str) -> Result:
    """Run one command in this process, which starts faster than one of its own."""
    return CliRunner().invoke(app, ["quota", *arguments])


def test_a_limit_is_set_shown_and_reset_and_each_change_says_why(place: list[str], tmp_path: Path) -> None:
    process = paddock("quota", "set", "blue-heron", "bucket_bytes", "200GB", "--why", "A checkpoint.", *place)
    assert process.stdout == "user:ada bucket_bytes: no limit -> 200000000000\n", process.stderr
    done = run("reset", "blue-heron", "bucket_bytes", "--why", "Enough.", *place)
    assert done.stdout == "user:ada bucket_bytes: 200000000000 -> no limit\n", done.output
    shown = run("show", "blue-heron", *place).stdout
    assert "race/tiny-blue-heron: 4 bytes, 4 stored, 1 files" in shown
    assert "system reset bucket_bytes: 200000000000 -> no limit: Enough." in shown
    site = open_site(Settings(data=tmp_path / "data", challenge=Path(place[3])))
    with reading(site.engine) as session:
        lines = session.exec(select(AuditRow.actor, AuditRow.proof, AuditRow.origin, AuditRow.action)).all()
    site.engine.dispose()
    here = ("system", "server:command-line", f"shell:{getpass.getuser()}")
    assert lines == [(*here, "quotas.set"), (*here, "quotas.reset")]


def test_what_can_not_be_done_says_why(place: list[str]) -> None:
    for order, code in (
        (["show", "nobody"], "NOT_REGISTERED"),
        (["set", "blue-heron", "sleep", "5", "--why", "x"], "BUDGET_NOT_FOUND"),
        (["set", "blue-heron", "bucket_files", "many", "--why", "x"], "INVALID_REQUEST"),
        (["reset", "blue-heron", "bucket_files", "--why", " "], "REASON_MISSING"),
    ):
        error = run(*order, *place).exception
        assert isinstance(error, PaddockError)
        assert error.code == code


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("5", 5),
        ("0", 0),
        ("1_000", 1000),
        ("2kB", 2000),
        ("200 GB", 2 * 10**11),
        ("none", None),
        ("Default", "default"),
    ],
)
def test_a_limit_is_read_as_people_write_it(text: str, limit: int | str | None) -> None:
    assert read_limit(text) == limit


@pytest.mark.parametrize("text", ["", "-1", "1.5", "1e3", "GB", "٣", "9" * 19, "9999999999TB", "unlimited"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(BadLimit):
        read_limit(text)
