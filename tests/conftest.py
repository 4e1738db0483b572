"""Fixtures that every folder of tests uses."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from sqlmodel import Session

from storage.database import reading, writing
from storage.settings import Settings
from storage.site import Site, open_site

CHALLENGE = """
org = "race"
slug = "tiny"
title = "A tiny race"
description = "For tests."
model = "tiny"
hardware = "cpu"
[harness]
num_prompts = 4
output_tokens = 16
warmup_requests = 1
max_prompt_tokens = 2000
request_timeout_s = 20
startup_timeout_s = 60
run_timeout_s = 120
[prompts]
tokenizer = "tokenizer"
public = "public.jsonl"
private_count = 4
[verification]
draws = 2
"""


T = TypeVar("T")


class HeldClock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> None:
        self.now += timedelta(**span)


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def challenge_file(tmp_path: Path) -> Path:
    path = tmp_path / "challenge.toml"
    path.write_text(CHALLENGE)
    return path


@pytest.fixture
def settings(tmp_path: Path, challenge_file: Path) -> Settings:
    return Settings(data=tmp_path / "data", challenge=challenge_file, tick=0.05, lease=3.0)


@pytest.fixture
def site(settings: Settings, clock: HeldClock) -> Iterator[Site]:
    """A whole site on a real, migrated SQLite file, with a held clock."""
    opened = open_site(settings, clock=clock)
    yield opened
    opened.engine.dispose()


@pytest.fixture
def session(site: Site) -> Iterator[Session]:
    """A writing session; it commits when the test ends."""
    with writing(site.engine) as opened:
        yield opened


@pytest.fixture
def read_session(site: Site) -> Iterator[Session]:
    with reading(site.engine) as opened:
        yield opened


def eventually(ask: Callable[[], T], *, within_s: float = 30.0, what: str = "the condition") -> T:
    """Poll `ask` until it returns something true; fail with a sentence after `within_s`."""
    deadline = time.monotonic() + within_s
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"{what} did not come true within {within_s} s"
        time.sleep(0.02)
    return answer
