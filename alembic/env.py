"""Run migrations against the engine handed over by `storage.database.alembic_config`."""

from alembic import context
from sqlmodel import SQLModel

import agents.rows  # noqa: F401  (each of these fills SQLModel.metadata)
import board.rows  # noqa: F401
import runner.rows  # noqa: F401
import storage.local.rows
import storage.quota_rows  # noqa: F401
from storage.collation import sort_by_characters
from storage.database import make_engine
from storage.settings import Settings

engine = context.config.attributes.get("engine") or make_engine(Settings().sqlalchemy_url)


def is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Tell whether a name in the database is to be compared with the models.

    Tables that begin with `search_words` are the search engine's own (a virtual table and its shadows on SQLite, a
    column of lexemes on PostgreSQL): no model can describe them, `board.search_engines` alone reads and writes them.
    """
    return not (kind == "table" and name is not None and name.startswith("search_words"))


with engine.execution_options(paddock_writes=True).connect() as connection:
    context.configure(
        connection=connection,
        target_metadata=SQLModel.metadata,
        render_as_batch=True,
        compare_type=True,
        include_name=is_ours,
    )
    with context.begin_transaction():
        context.run_migrations()
        sort_by_characters(connection)
