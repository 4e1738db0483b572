"""A real PostgreSQL, started once for all tests of this folder that want one."""

from collections.abc import Callable

import pytest

from tests.board import postgres

server = pytest.fixture(scope="session")(postgres.served)


@pytest.fixture(scope="session")
def new_database(server: str) -> Callable[[], str]:
    """Makes an empty database and returns its URL."""
    return lambda: postgres.new_database(server)
