"""Engine, sessions and migrations.

SQLite runs in WAL mode. A writing session begins IMMEDIATE, so that what it read can't change before it
writes; a reading session never blocks a writer.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError
from sqlmodel import Session

from storage.errors import Invalid

_MIGRATIONS = Path(__file__).resolve().parent.parent / "alembic"
_BUSY_TIMEOUT_MS = 30_000


class BadDatabaseUrl(Invalid):
    """The database's URL can't be read, or its driver isn't installed."""

    code = "BAD_DATABASE_URL"


def make_engine(url: str) -> Engine:
    """Open a database; for SQLite the file's folder is created.

    Raises:
        BadDatabaseUrl: the URL names no database that can be opened here.
    """
    try:
        return _engine(make_url(url), url)
    except (ArgumentError, ModuleNotFoundError) as error:
        raise BadDatabaseUrl(f"PADDOCK_DATABASE_URL names no database that can be opened here: {error}.") from error


def _engine(parsed: URL, url: str) -> Engine:
    """Open it; what statements are given is never part of an error, which a log would keep."""
    if parsed.get_backend_name() != "sqlite":
        return create_engine(url, pool_pre_ping=True, hide_parameters=True)
    if parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    connect_args = {"check_same_thread": False, "timeout": _BUSY_TIMEOUT_MS / 1000}
    engine = create_engine(url, connect_args=connect_args, hide_parameters=True)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # SQLAlchemy's begin event says BEGIN, not the driver
    for pragma in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL", f"busy_timeout={_BUSY_TIMEOUT_MS}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("paddock_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Iterator[Session]:
    """Open a session that only reads; it is rolled back at the end."""
    with Session(engine) as session:
        yield session


@contextmanager
def writing(engine: Engine) -> Iterator[Session]:
    """Open a session that commits at the end of the block, or rolls back if the block raises."""
    with Session(engine.execution_options(paddock_writes=True)) as session, session.begin():
        yield session


def hold(session: Session, names: Iterable[str]) -> None:
    """Keep every other writer of these names waiting until the transaction ends.

    SQLite's writing session holds the whole database anyway.
    """
    if session.get_bind().dialect.name == "postgresql":
        for name in sorted(names):
            session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": name})


def alembic_config(engine: Engine) -> Config:
    """Build the configuration that migrations of `engine` run with."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["engine"] = engine
    return config


def migrate(engine: Engine) -> None:
    """Bring the schema to the newest version. Running it again changes nothing."""
    command.upgrade(alembic_config(engine), "head")
