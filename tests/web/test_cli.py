"""A command that can't be done says why in one sentence and exits 1."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def paddock(*arguments: str, env: Mapping[str, str] = {}) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "web", *arguments]
    return subprocess.run(
        command, env={**os.environ, **env}, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def refused(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


@pytest.fixture
def place(tmp_path: Path, challenge_file: Path) -> list[str]:
    return ["--data", str(tmp_path / "data"), "--challenge", str(challenge_file)]


@pytest.mark.parametrize("name", ["[/x]", "[bold]", "Ada", "verifier", "a" * 35])
def test_a_bad_user_name_is_repeated_as_it_was_written(place: list[str], name: str) -> None:
    assert name in refused(paddock("user", "add", name, *place))


def test_a_token_that_is_unknown_is_refused(place: list[str]) -> None:
    refused(paddock("token", "revoke", "[/x]", *place))


def test_a_folder_that_cannot_be_had_is_named(tmp_path: Path, challenge_file: Path) -> None:
    (tmp_path / "file").touch()
    for data in (tmp_path / "file", tmp_path / "file" / "below"):
        message = refused(paddock("user", "add", "ada", "--data", str(data), "--challenge", str(challenge_file)))
        assert str(data) in message


def test_a_damaged_database_is_refused(place: list[str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "paddock.db").write_text("this is no database")
    assert "not a database" in refused(paddock("user", "add", "ada", *place))


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PORT", "abc"),
        ("PORT", "99999"),
        ("TICK", "-1"),
        ("TICK", "nan"),
        ("LEASE", "0"),
        ("EXPAND_LIMIT", "0"),
        ("DATABASE_URL", "nonsense"),
        ("DATABASE_URL", "foo://x/y"),
    ],
)
def test_a_setting_that_cannot_be_is_named(place: list[str], variable: str, value: str) -> None:
    assert f"PADDOCK_{variable}" in refused(paddock("user", "add", "ada", *place, env={f"PADDOCK_{variable}": value}))


def test_an_address_in_use_is_refused_before_anything_starts(place: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        message = refused(paddock("serve", "--port", str(taken.getsockname()[1]), *place))
    assert "in use" in message


def test_settings_are_shown_with_their_whole_names() -> None:
    assert "PADDOCK_TRUSTED_SUBMITTERS" in paddock("settings", env={"COLUMNS": "80"}).stdout


def test_processes_that_open_a_new_folder_at_once_agree(place: list[str], tmp_path: Path) -> None:
    names = ["ada", "bob", "eve"]
    with ThreadPoolExecutor(len(names)) as pool:
        made = list(pool.map(lambda name: paddock("user", "add", name, *place), names))
    assert [done.returncode for done in made] == [0, 0, 0], [done.stderr for done in made]
    for done in made:  # each token was hashed with the one secret that stands
        assert paddock("token", "revoke", done.stdout.strip(), *place).returncode == 0
    assert len((tmp_path / "data" / "secret.key").read_bytes()) == 32


def test_doctor_names_what_is_missing(place: list[str], tmp_path: Path) -> None:
    done = paddock("doctor", *place, env={"PADDOCK_SERVER_ENV": str(tmp_path / "nowhere")})
    assert done.returncode == 1
    assert f"MISSING  server environment: none at {tmp_path / 'nowhere'}; run: make server-env" in done.stdout
    assert "MISSING  private reference records" in done.stdout
