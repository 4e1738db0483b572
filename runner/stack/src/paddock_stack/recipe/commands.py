"""Offer `paddock-stack import-manifest`.

paddock-stack import-manifest manifest.json --out profile.toml
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine
from paddock_stack.recipe.importing import import_manifest
from paddock_stack.recipe.rows import Row
from paddock_stack.recipe.toml import written
from paddock_stack.refusals import Refused

SUMMARY = "turn a public submission's manifest into a profile for current vLLM"
_WIDEST = 48


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import-manifest` to `parser`."""
    parser.add_argument("manifest", type=Path, metavar="MANIFEST")
    parser.add_argument("--out", type=Path, default=Path("imported.toml"), metavar="FILE.toml")


def run(arguments: argparse.Namespace) -> int:
    """Write the profile and print what became of each variable; return the exit status."""
    imported = import_manifest(arguments.manifest)
    _write(written(imported.profile), arguments.out)
    print(table(imported.rows))
    print(f"{arguments.out}: serve it with `paddock-stack serve {arguments.out}`")
    return 0


def _write(text: str, out: Path) -> None:
    """Write the profile `text` to `out`, unless it is one that can't be read."""
    if out.suffix != ".toml":
        raise Refused(f"{out} must end in .toml, or it is taken for a profile's name")
    with tempfile.TemporaryDirectory() as scratch:
        tried = Path(scratch) / out.name
        tried.write_text(text, encoding="utf-8")
        load(str(tried), Machine.A10G)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise Refused(f"{out} can't be written: {fault.strerror}") from fault


def table(rows: Sequence[Row]) -> str:
    """Return the rows as lines of aligned columns."""
    cells = [
        ("variable", "value", "today", "how or why"),
        *((_short(row.name), _short(row.value), row.fate, row.how) for row in rows),
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]) for line in cells
    )


def _short(value: str) -> str:
    value = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in value)
    return value if len(value) <= _WIDEST else value[: _WIDEST - 1] + "…"
