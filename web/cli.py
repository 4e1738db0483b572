"""`paddock`: the operator's command line."""

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text
from sqlalchemy.exc import DBAPIError

from agents import accounts, tokens
from board import reindex as index
from runner import prompt_sets, worker
from storage import settings as rows
from storage.database import writing
from storage.errors import PaddockError
from storage.settings import Settings
from storage.site import Site, open_site
from web import doctor as checks
from web import serving

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run a race: board, buckets and runner in one place.",
)
user = typer.Typer(no_args_is_help=True, help="People's accounts.")
token = typer.Typer(no_args_is_help=True, help="Bearer tokens.")
app.add_typer(user, name="user")
app.add_typer(token, name="token")

Data = Annotated[Path | None, typer.Option("--data", help="Data folder; default PADDOCK_DATA.")]
Race = Annotated[Path | None, typer.Option("--challenge", help="The race's file; default PADDOCK_CHALLENGE.")]
out = Console(highlight=False, markup=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def _settings(data: Path | None, challenge: Path | None, **more: object) -> Settings:
    given = {"data": data, "challenge": challenge, **more}
    return rows.load(**{key: value for key, value in given.items() if value is not None})


def _open(data: Path | None, challenge: Path | None = None, **more: object) -> Site:
    return open_site(_settings(data, challenge, **more))


@app.command()
def serve(
    data: Data = None,
    challenge: Race = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    worker: Annotated[bool, typer.Option(help="Also run submissions on this machine.")] = True,
) -> None:
    """Migrate the database, then run web, worker and ticks until interrupted."""
    serving.serve(_open(data, challenge, host=host, port=port), with_worker=worker)


@app.command("worker")
def run_worker(
    data: Data = None,
    challenge: Race = None,
    lifeline_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run submissions until interrupted."""
    worker.main(_open(data, challenge), lifeline_fd)


@user.command("add")
def add_user(
    name: str,
    data: Data = None,
    challenge: Race = None,
    organizer: Annotated[
        bool, typer.Option("--organizer", help="May broadcast and cancel anybody's benchmark.")
    ] = False,
) -> None:
    """Make an account and print its token, which can't be shown again. For an existing account: one more token."""
    site = _open(data, challenge)
    with writing(site.engine) as session:
        accounts.add(session, name, organizer=organizer, now=site.clock())
        fresh = tokens.issue(session, name, secret=site.secret, now=site.clock())
    print(fresh)  # noqa: T201  (plain, so that TOKEN=$(paddock user add NAME) works)


@token.command("revoke")
def revoke_token(token: str, data: Data = None, challenge: Race = None) -> None:
    """Revoke a token, named by itself or by its id, at once."""
    site = _open(data, challenge)
    with writing(site.engine) as session:
        row = tokens.revoke(session, token, secret=site.secret, now=site.clock())
        out.print(f"Token {row.id} of {row.user} is revoked.")


@app.command()
def reindex(
    data: Data = None,
    challenge: Race = None,
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit 1 if index and files differ.")] = False,
) -> None:
    """Rebuild every board row from the files of the central bucket."""
    site = _open(data, challenge)
    if check:
        with writing(site.engine) as session:  # nothing is changed; a reader could not hold back the server's writes
            differences = index.check(site, session)
        for line in differences:
            out.print(line)
        out.print(f"{len(differences)} differences between the index and the files.")
        raise typer.Exit(1 if differences else 0)
    with writing(site.engine) as session:
        out.print(str(index.rebuild(site, session)))


@app.command()
def references(
    model: Annotated[Path, typer.Option(help="Folder of the reference checkpoint.")],
    data: Data = None,
    challenge: Race = None,
    device: Annotated[str, typer.Option(help="Where to run it: cpu, cuda.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32 or bfloat16.")] = "float32",
) -> None:
    """Make the reference token records of the public and the private prompts with the server environment."""
    for line in prompt_sets.make_references(_open(data, challenge), model, device=device, dtype=dtype):
        out.print(line)


@app.command()
def doctor(data: Data = None, challenge: Race = None) -> None:
    """Say what this machine has for running a race and what is missing."""
    findings = checks.examine(_open(data, challenge))
    for finding in findings:
        out.print(f"{'ok     ' if finding.ok else 'MISSING'}  {finding.what}: {finding.detail}")
    raise typer.Exit(0 if all(finding.ok for finding in findings) else 1)


@app.command("settings")
def show_settings() -> None:
    """Show every setting: its variable, unit, default, the value in force, and what it is."""
    table = Table(Column("variable", no_wrap=True), "unit", "default", "now", "what it is", box=None, pad_edge=False)
    for name, unit, default, help_text in rows.rows():
        table.add_row(*map(Text, (name, unit, default, os.environ.get(name, ""), help_text)))
    out.print(table)


def main() -> None:
    """Run the command line; a failure is one sentence and exit code 1."""
    try:
        app()
    except PaddockError as error:
        _fail(f"{error.code}: {error.message}" + (f" {error.hint}" if error.hint else ""))
    except DBAPIError as error:
        _fail(f"DATABASE: {' '.join(str(error.orig).split())}.")
    except OSError as error:
        _fail(f"SYSTEM: {error.filename or 'this machine'}: {error.strerror or error}.")


def _fail(sentence: str) -> NoReturn:
    err.print(sentence)
    raise SystemExit(1)
