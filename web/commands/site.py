"""What every command shares: how it is told its data folder, where it prints, who it is in the audit log."""

import getpass
import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from sqlmodel import Session

from agents import audit
from agents.roles import Role
from agents.scopes import ALL, Proof
from agents.tokens import Caller
from storage import settings as rows
from storage.settings import Settings
from storage.site import Site, open_site

Data = Annotated[Path | None, typer.Option("--data", help="Data folder; default PADDOCK_DATA.")]
Race = Annotated[Path | None, typer.Option("--challenge", help="The race's file; default PADDOCK_CHALLENGE.")]
out = Console(highlight=False, markup=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
HERE = Caller("system", "command-line", Role.OPERATOR, ALL, Proof.SERVER)
"""Who acts when a command does. Names of accounts are people's: what this machine calls its user is none of them."""


def read_settings(data: Path | None, challenge: Path | None, **more: object) -> Settings:
    """Read the settings; what the command line gives wins over the environment."""
    given = {"data": data, "challenge": challenge, **more}
    return rows.load(**{key: value for key, value in given.items() if value is not None})


def open_here(data: Path | None, challenge: Path | None = None, **more: object) -> Site:
    """Open the site that the command line names."""
    return open_site(read_settings(data, challenge, **more))


def origin() -> str:
    """Say where a command comes from: the shell of whom this machine calls its user."""
    try:
        return f"shell:{getpass.getuser()}"
    except (KeyError, OSError):  # a user without a name, as in a bare container
        return f"shell:{os.getuid()}"


def note(site: Site, session: Session, action: str, target: str) -> None:
    """Write down in the audit log what a command did."""
    audit.record(session, caller=HERE, action=action, target=target, now=site.clock(), origin=origin())
