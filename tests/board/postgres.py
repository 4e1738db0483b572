"""A real PostgreSQL for tests, in a folder of its own and on a socket there; nothing listens on the network."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

BIN = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), default=Path("absent"))
_ROOT_WITHOUT = "postgres"
"""PostgreSQL refuses to run as root; its package makes this user."""

_A_LANGUAGE = ("--locale=C", "--locale-provider=icu", "--icu-locale=en")
"""An operator's database sorts text by some language; ours must not depend on it."""


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Start a server in `folder`; yields its URL for SQLAlchemy."""
    data = folder / "pg"
    owner = pwd.getpwnam(_ROOT_WITHOUT) if os.geteuid() == 0 else None
    data.mkdir(mode=0o700)
    if owner:
        os.chown(data, owner.pw_uid, owner.pw_gid)

    def run(*command: str) -> None:
        who = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, **who)  # type: ignore[call-overload]
        assert done.returncode == 0, done.stderr + done.stdout

    run(str(BIN / "initdb"), "-D", str(data), "-U", "paddock", "--auth=trust", "-E", "UTF8", "-N", *_A_LANGUAGE)
    options = f"-k {data} -c listen_addresses='' -c fsync=off"
    run(str(BIN / "pg_ctl"), "-D", str(data), "-o", options, "-l", str(data / "log"), "-w", "start")
    try:
        yield f"postgresql+psycopg://paddock@/postgres?host={data}"
    finally:
        run(str(BIN / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop")
        shutil.rmtree(data)


def served() -> Iterator[str]:
    """Yield a server's URL for the life of the fixture that is made of this; skip the test where there is no server."""
    if not BIN.exists():
        pytest.skip("NO POSTGRESQL: what only PostgreSQL does goes untested (Debian: postgresql)")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with running(Path(folder)) as url:
            yield url


def new_database(url: str) -> str:
    """Make an empty database on the server of `url`; returns its URL."""
    name = f"race_{secrets.token_hex(4)}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.replace("/postgres?", f"/{name}?")
