"""Time a bake of a checkpoint with E4B's shapes against `cp` of the same files, and read its peak memory.

    nice .venv/bin/python bench/bake.py [--scale 1.0] [--folder FOLDER]

Both start with a cold page cache for the input and end when their bytes are on the disk (`cp` by `sync -f`). It needs
three times the checkpoint's 9.2 GB for the while it runs, and removes it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e4b_checkpoint import make_checkpoint

SOURCES = Path(__file__).resolve().parents[1] / "runner/stack/src"
BAKE = [sys.executable, "-m", "paddock_stack.cli", "bake"]
DROPPED = "2,3,4,36,37"


@dataclass(frozen=True)
class Timed:
    """What one command took."""

    seconds: float
    peak_mb: float


def main() -> int:
    """Make the checkpoint, copy it, bake it and print the figures as JSON; return the exit status."""
    parser = argparse.ArgumentParser(description="Time a bake against cp.")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the checkpoint: 1 is 9.2 GB")
    parser.add_argument("--folder", type=Path, help="where to work (default: the temporary folder)")
    arguments = parser.parse_args()
    with _work_folder(arguments.folder) as work:
        size = make_checkpoint(work / "in", arguments.scale)
        os.sync()
        copied = _timed(work, ["cp", "-r", str(work / "in"), str(work / "copy")], synced=work / "copy")
        shutil.rmtree(work / "copy")
        os.sync()
        baked = _timed(work, [*BAKE, "drop-layers", str(work / "in"), str(work / "out"), "--layers", DROPPED])
        _call([*BAKE, "verify", str(work / "out")])
        print(json.dumps(_figures(size, work / "out", copied, baked), indent=2))
    return 0


@contextmanager
def _work_folder(parent: Path | None) -> Iterator[Path]:
    work = Path(tempfile.mkdtemp(prefix="bake-", dir=parent))
    try:
        yield work
    finally:
        shutil.rmtree(work)


def _timed(work: Path, command: Sequence[str], synced: Path | None = None) -> Timed:
    _forget(work / "in/model.safetensors")
    started = time.monotonic()
    process = subprocess.Popen(command, env=_environment())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    if synced is not None:
        _call(["sync", "-f", str(synced)])
    return Timed(time.monotonic() - started, usage.ru_maxrss / 1024)


def _forget(path: Path) -> None:
    """Take the file at `path` out of the page cache, so that both commands read it from the disk."""
    opened = os.open(path, os.O_RDONLY)
    os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(opened)


def _call(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCES)}


def _figures(size: int, out: Path, copied: Timed, baked: Timed) -> dict[str, float]:
    made = sum(path.stat().st_size for path in out.glob("*.safetensors"))
    return {
        "input_gb": round(size / 1e9, 3),
        "output_gb": round(made / 1e9, 3),
        "cp_s": round(copied.seconds, 2),
        "bake_s": round(baked.seconds, 2),
        "bake_over_cp": round(baked.seconds / copied.seconds, 3),
        "bake_peak_mb": round(baked.peak_mb, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
