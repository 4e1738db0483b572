"""Write alembic/versions/0001 anew from the tables; used only until the first release."""

import tempfile
from pathlib import Path

from alembic import command

from storage.database import alembic_config, make_engine

VERSIONS = Path(__file__).resolve().parent.parent / "alembic" / "versions"

for old in VERSIONS.glob("0001_*.py"):
    old.unlink()
with tempfile.TemporaryDirectory() as folder:
    engine = make_engine(f"sqlite:///{folder}/empty.db")
    command.revision(alembic_config(engine), message="first tables", autogenerate=True, rev_id="0001")
