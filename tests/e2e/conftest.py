"""A running race for each test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.race import Race, lay_out


@pytest.fixture
def race(tmp_path: Path) -> Iterator[Race]:
    """A race whose server runs."""
    race = lay_out(tmp_path / "race")
    race.start()
    yield race
    race.stop()


@pytest.fixture
def auto_race(tmp_path: Path) -> Iterator[Race]:
    """A race that benchmarks staged submissions by itself."""
    race = lay_out(tmp_path / "race", auto=True)
    race.start()
    yield race
    race.stop()
