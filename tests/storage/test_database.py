"""The schema is what the migrations make, and names of ours are ours."""

from pathlib import Path

import alembic
from alembic import command

import agents
from storage.database import alembic_config, migrate
from storage.site import Site

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_tables_are_those_that_the_migrations_make(site: Site) -> None:
    migrate(site.engine)
    command.check(alembic_config(site.engine))


def test_our_package_agents_and_the_library_alembic_are_not_shadowed() -> None:
    assert Path(agents.__file__ or "").parent == ROOT / "agents"
    assert not Path(alembic.__file__).is_relative_to(ROOT / "alembic")
    assert not (ROOT / "alembic" / "__init__.py").exists()
