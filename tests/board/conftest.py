"""A real PostgreSQL, started once for all tests of this folder that want one."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.board import postgres


@pytest.fixture(scope="session")
def new_database() -> Iterator[Callable[[], str]]:
    """Makes an empty database and returns its URL."""
    if not postgres.BIN.exists():
        pytest.skip("NO POSTGRESQL: what only PostgreSQL does goes untested (Debian: postgresql)")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with postgres.running(Path(folder)) as url:
            yield lambda: postgres.new_database(url)
