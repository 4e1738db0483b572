"""Write the next migration from what the tables have and the migrations lack.

    python scripts/new_migration.py "what changes"

Read what it wrote, then: ruff check --fix alembic && ruff format alembic
"""

import sys
import tempfile
from pathlib import Path

from alembic import command

from storage.database import alembic_config, make_engine, migrate

VERSIONS = Path(__file__).resolve().parent.parent / "alembic" / "versions"

with tempfile.TemporaryDirectory() as folder:
    engine = make_engine(f"sqlite:///{folder}/empty.db")
    migrate(engine)
    number = 1 + max(int(path.name[:4]) for path in VERSIONS.glob("[0-9]*.py"))
    command.revision(alembic_config(engine), message=sys.argv[1], autogenerate=True, rev_id=f"{number:04}")
