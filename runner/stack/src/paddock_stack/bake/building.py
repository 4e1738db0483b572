"""Own the folder beside the output in which a bake grows, and what a restart finds there.

`OUT.baking` holds finished weights files, at most one with the ending `.part`, and `.state.json`:

    {"plan": "…", "shards": {"model-00001-of-00003.safetensors": {"sha256": "…", "size_bytes": 3999999024}}}

A file is in the state only after it is durable under its final name. The folder is renamed to OUT when all is there.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

from paddock_stack.bake.checkpoint import PROVENANCE, read_json
from paddock_stack.bake.hashing import Digest
from paddock_stack.refusals import Refused

STATE, ENDING, PART = ".state.json", ".baking", ".part"


def is_baked(out: Path, plan: str) -> bool:
    """Return whether `out` holds this very plan's result; raise `Refused` where it holds anything else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return False
    if (out / PROVENANCE).is_file() and read_json(out / PROVENANCE).get("plan") == plan:
        return True
    raise Refused(f"{out} exists and holds something else than this bake would make; name another folder")


class Building:
    """The folder of one unfinished bake, held by one process at a time.

    Entering makes the folder or takes up an unfinished one of the same plan. Leaving with an error keeps finished
    weights files for a restart; where there are none, nothing stays.
    """

    def __init__(self, out: Path, plan: str, *, discard: bool = False) -> None:
        self.out, self.plan, self._discard = out, plan, discard
        self.path = out.with_name(out.name + ENDING)
        self.finished: dict[str, Digest] = {}

    def __enter__(self) -> Self:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise Refused(f"{self.path} can't be made: {fault.strerror}") from fault
        self._lock = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._take_up()
        except BlockingIOError as fault:
            os.close(self._lock)
            raise Refused(f"another bake is writing {self.out} at this moment") from fault
        except (Refused, OSError):
            os.close(self._lock)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None and self.path.exists():
            self._remove_unfinished()
            if not self.finished:
                shutil.rmtree(self.path)
        os.close(self._lock)

    def _take_up(self) -> None:
        present = [path for path in self.path.iterdir() if not path.name.startswith(".")]
        held = read_json(self.path / STATE) if (self.path / STATE).exists() else {}
        if present and held.get("plan") != self.plan and not self._discard:
            raise Refused(f"{self.path} holds an unfinished bake of another plan; --discard throws it away")
        if held.get("plan") == self.plan:
            self.finished = {
                name: Digest(**digest) for name, digest in held["shards"].items() if self._is_whole(name, digest)
            }
        self._remove_unfinished()
        self._save()

    def _is_whole(self, name: str, digest: dict[str, int]) -> bool:
        path = self.path / name
        return path.is_file() and path.stat().st_size == digest["size_bytes"]

    def _remove_unfinished(self) -> None:
        for path in self.path.iterdir():
            if path.name not in self.finished and path.name != STATE:
                path.unlink()

    def part_path(self, name: str) -> Path:
        """Return where the weights file `name` is to be written before it is whole."""
        return self.path / (name + PART)

    def keep(self, name: str, digest: Digest) -> None:
        """Give the weights file `name`, whole and durable, its final name, and remember it over a restart."""
        self.part_path(name).rename(self.path / name)
        self.finished[name] = digest
        self._save()

    def _save(self) -> None:
        shards = {name: digest.record() for name, digest in self.finished.items()}
        write_durably(self.path / f"{STATE}{PART}", json.dumps({"plan": self.plan, "shards": shards}).encode())
        (self.path / f"{STATE}{PART}").rename(self.path / STATE)
        os.fsync(self._lock)

    def publish(self) -> None:
        """Rename the folder, now complete, to its final name."""
        os.fsync(self._lock)
        self.path.rename(self.out)
        # Only now: killed between the two, a folder without its state would belong to nobody.
        (self.out / STATE).unlink()
        sync_folder(self.out.parent)


def write_durably(path: Path, content: bytes) -> None:
    """Write a new file at `path`, or over what lies there, and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in `folder` are on the disk."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
