"""Offer `paddock-stack import-manifest`.

paddock-stack import-manifest manifest.json --out profile.toml
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from paddock_stack.profiles.catalogue import load
from paddock_stack.profiles.schema import Machine
from paddock_stack.recipe.importing import Row, import_manifest
from paddock_stack.recipe.toml import written

SUMMARY = "turn a public submission's manifest into a profile for current vLLM"
_WIDEST = 48


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import-manifest` to `parser`."""
    parser.add_argument("manifest", type=Path, metavar="MANIFEST")
    parser.add_argument("--out", type=Path, default=Path("imported.toml"), metavar="FILE.toml")


def run(arguments: argparse.Namespace) -> int:
    """Write the profile and print what became of each variable; return the exit status."""
    imported = import_manifest(arguments.manifest)
    arguments.out.write_text(written(imported.profile), encoding="utf-8")
    load(str(arguments.out.resolve()), Machine.A10G)  # it must be one that can be served
    print(table(imported.rows))
    print(f"{arguments.out}: serve it with `paddock-stack serve {arguments.out}`")
    return 0


def table(rows: Sequence[Row]) -> str:
    """Return the rows as lines of aligned columns."""
    cells = [
        ("variable", "value", "today", "how or why"),
        *((row.name, _short(row.value), row.fate, row.how) for row in rows),
    ]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]) for line in cells
    )


def _short(value: str) -> str:
    return value if len(value) <= _WIDEST else value[: _WIDEST - 1] + "…"
