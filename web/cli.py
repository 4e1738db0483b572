"""`paddock`: the operator's command line."""

import os
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.table import Column, Table
from rich.text import Text
from sqlalchemy.exc import DBAPIError

from board import reindex as index
from runner import prompt_sets, worker
from storage import settings as rows
from storage.database import writing
from storage.errors import PaddockError
from web import doctor as checks
from web import serving
from web.commands import mcp, people, quota, record, store
from web.commands.site import Data, Race, err, open_here, out

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Run a race: board, buckets and runner in one place.",
)
app.add_typer(people.user, name="user")
app.add_typer(people.token, name="token")
app.add_typer(people.browser_session, name="session")
app.add_typer(quota.quota, name="quota")
app.add_typer(store.app)
app.add_typer(record.app)
app.add_typer(mcp.app)


@app.command()
def serve(
    data: Data = None,
    challenge: Race = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    worker: Annotated[bool, typer.Option(help="Also run submissions on this machine.")] = True,
) -> None:
    """Migrate the database, then run web, worker and ticks until interrupted."""
    serving.serve(open_here(data, challenge, host=host, port=port), with_worker=worker)


@app.command("worker")
def run_worker(
    data: Data = None,
    challenge: Race = None,
    lifeline_fd: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Run submissions until interrupted."""
    worker.main(open_here(data, challenge), lifeline_fd)


@app.command()
def reindex(
    data: Data = None,
    challenge: Race = None,
    check: Annotated[bool, typer.Option("--check", help="Only compare; exit 1 if index and files differ.")] = False,
) -> None:
    """Rebuild every board row from the files of the central bucket."""
    site = open_here(data, challenge)
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
    for line in prompt_sets.make_references(open_here(data, challenge), model, device=device, dtype=dtype):
        out.print(line)


@app.command()
def doctor(data: Data = None, challenge: Race = None) -> None:
    """Say what this machine has for running a race and what is missing."""
    findings = checks.examine(open_here(data, challenge))
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
