"""Run migrations against the engine handed over by `storage.database.alembic_config`."""

from alembic import context
from sqlmodel import SQLModel

import agents.rows  # noqa: F401  (each of these four fills SQLModel.metadata)
import board.rows  # noqa: F401
import runner.rows  # noqa: F401
import storage.local.rows  # noqa: F401
from storage.database import make_engine
from storage.settings import Settings

engine = context.config.attributes.get("engine") or make_engine(Settings().sqlalchemy_url)

with engine.execution_options(paddock_writes=True).connect() as connection:
    context.configure(connection=connection, target_metadata=SQLModel.metadata, render_as_batch=True, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()
