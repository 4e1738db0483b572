"""What every command shares: how it is told its data folder, and where it prints."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from agents.roles import Role
from agents.scopes import Proof
from agents.tokens import Caller
from storage import settings as rows
from storage.settings import Settings
from storage.site import Site, open_site

Data = Annotated[Path | None, typer.Option("--data", help="Data folder; default PADDOCK_DATA.")]
Race = Annotated[Path | None, typer.Option("--challenge", help="The race's file; default PADDOCK_CHALLENGE.")]
out = Console(highlight=False, markup=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
HERE = Caller("system", "command-line", Role.OPERATOR, proof=Proof.SERVER)
"""Who acts for the audit log when a command does."""


def read_settings(data: Path | None, challenge: Path | None, **more: object) -> Settings:
    """Read the settings; what the command line gives wins over the environment."""
    given = {"data": data, "challenge": challenge, **more}
    return rows.load(**{key: value for key, value in given.items() if value is not None})


def open_here(data: Path | None, challenge: Path | None = None, **more: object) -> Site:
    """Open the site that the command line names."""
    return open_site(read_settings(data, challenge, **more))
