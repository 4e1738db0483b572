"""Commands about the record: taking in another board's."""

from pathlib import Path
from typing import Annotated

import typer

from board.imports import import_board
from storage.database import writing
from web.commands.site import Data, Race, note, open_here, out

app = typer.Typer()

_SHOWN = 50


@app.command("import")
def import_folder(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="A copy of a central bucket.")],
    label: Annotated[str, typer.Option("--from", help="Where it comes from; the folder's name by default.")] = "",
    data: Data = None,
    challenge: Race = None,
) -> None:
    """Take another board's record in as read-only history; nothing of it ranks or counts as verified here."""
    site = open_here(data, challenge)
    source = folder.resolve()
    with writing(site.engine) as session:
        report = import_board(site, session, source, label=label or source.name)
        note(site, session, "record.import", label or source.name)
    for what, counts in (("taken", report.taken), ("here already", report.present), ("left out", report.left_out)):
        out.print(f"{what}: {', '.join(f'{count} {name}' for name, count in sorted(counts.items())) or 'nothing'}")
    out.print(f"can't be taken: {len(report.bad)}")
    for line in report.bad[:_SHOWN]:
        out.print(f"  {line}")
