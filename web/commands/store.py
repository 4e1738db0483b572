"""Commands that look after the bytes: verify them, sweep up, start a new generation."""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from storage.database import writing
from storage.local import fsck as checks
from storage.local import sweep as sweeping
from storage.local.fsck import Finding
from storage.site import Site
from web.commands.site import Data, Race, err, note, open_here, out

app = typer.Typer()


@app.command()
def fsck(
    data: Data = None,
    challenge: Race = None,
    repair: Annotated[bool, typer.Option("--repair", help="Set damaged bytes aside; their files stay listed.")] = False,
    repair_missing: Annotated[
        bool, typer.Option("--repair-missing", help="Repair even if more than half of the xorbs are missing.")
    ] = False,
) -> None:
    """Verify every stored byte, every file's hash and every name; exit 1 if anything is wrong."""
    site = open_here(data, challenge)
    extent = checks.measure(site.engine)
    if repair and not repair_missing:
        _refuse_if_most_are_missing(site, extent.xorbs)
    repair = repair or repair_missing
    found = 0
    are_bytes_gone = False
    try:
        for finding in _findings(site, repair=repair):
            out.print(str(finding))
            found += 1
            are_bytes_gone = are_bytes_gone or (finding.what == "xorb" and finding.is_damage)
    finally:  # an interrupted repair has set bytes aside, too
        if repair:
            _note(site, "store.repair", f"{found} faults")
        if repair and are_bytes_gone:
            out.print(f"New store generation {site.blobs.begin_generation()}: clients send again what was set aside.")
    counted = f"{extent.xorbs} xorbs ({extent.xorb_bytes} bytes), {extent.contents} contents, {extent.files} files"
    out.print(f"{found} faults in {counted}.")
    raise typer.Exit(1 if found else 0)


@app.command()
def sweep(
    data: Data = None,
    challenge: Race = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
) -> None:
    """Remove what no file refers to and nobody mentioned for three weeks; safe beside a running server."""
    site = open_here(data, challenge)
    if dry_run:
        out.print(f"Would remove {sweeping.foresee(site.engine, site.blobs, now=site.clock())}.")
    else:
        out.print(f"Removed {sweeping.sweep(site.engine, site.blobs, now=site.clock())}.")


@app.command()
def generation(
    data: Data = None,
    challenge: Race = None,
    new: Annotated[
        bool, typer.Option("--new", help="Begin a new one: after bytes were lost or restored from an older backup.")
    ] = False,
) -> None:
    """Show the store's generation; clients forget what they uploaded to an earlier one."""
    site = open_here(data, challenge)
    if new:
        _note(site, "store.generation", str(site.blobs.begin_generation()))
    out.print(site.blobs.generation)


def _note(site: Site, action: str, target: str) -> None:
    with writing(site.engine) as session:
        note(site, session, action, target)


def _refuse_if_most_are_missing(site: Site, recorded: int) -> None:
    """Stop a repair that would forget the store because its disk is not mounted."""
    missing = checks.count_missing(site.engine, site.blobs)
    if not (missing * 2 <= recorded):
        err.print(
            f"{missing} of {recorded} xorbs are not in {site.blobs.folder / 'xorbs'}: "
            "mount the store, or give --repair-missing to forget them."
        )
        raise typer.Exit(2)


def _findings(site: Site, *, repair: bool) -> Iterator[Finding]:
    extent = checks.measure(site.engine)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as progress:
        xorbs = progress.add_task("bytes of xorbs", total=extent.xorb_bytes)
        contents = progress.add_task("files' hashes", total=extent.contents)
        yield from checks.check_xorbs(
            site.engine, site.blobs, repair=repair, advance=lambda size: progress.advance(xorbs, size)
        )
        yield from checks.check_contents(
            site.engine, repair=repair, advance=lambda number: progress.advance(contents, number)
        )
        yield from checks.check_files(site.engine)
