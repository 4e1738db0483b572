"""The files a measurement leaves: JSON with finite numbers only, each written whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Record = Mapping[str, Any]


class RunFolder:
    """The folder that receives a measurement's files. A file of that name from before is replaced."""

    def __init__(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path

    def write(self, name: str, record: Record) -> None:
        """Write one record as indented JSON."""
        self._replace(name, json.dumps(record, indent=1, sort_keys=True, allow_nan=False) + "\n")

    def write_lines(self, name: str, records: Iterable[Record]) -> None:
        """Write records as one line of JSON each."""
        self._replace(name, "".join(json.dumps(record, sort_keys=True, allow_nan=False) + "\n" for record in records))

    def _replace(self, name: str, text: str) -> None:
        unfinished = self.path / f".{name}.unfinished"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self.path / name)


def announce(stage: str, done: int, total: int) -> None:
    """Print one line of progress for whoever runs the harness."""
    sys.stdout.write(json.dumps({"stage": stage, "done": done, "total": total}) + "\n")
    sys.stdout.flush()
