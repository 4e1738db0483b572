"""Folders that a submission filled: measured and removed by programs that neither depth nor a race upsets.

A tree may be deeper than Python's stack and longer than a path may be, and may change while it is looked at.
"""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

_MOST_SECONDS = 60.0


@dataclass(frozen=True)
class Tree:
    """What a folder takes on its disk: bytes in whole blocks, and files and folders counted alike."""

    size_bytes: int
    entries: int


def measure(folder: Path) -> Tree | None:
    """Measure a folder without following a link, or return None where that takes more than a minute."""
    try:
        return Tree(size_bytes=_du(folder, "--block-size=1"), entries=_du(folder, "--inodes"))
    except subprocess.TimeoutExpired:
        return None


def free_bytes(folder: Path) -> int:
    """Tell how much room is left on the folder's disk; files that were deleted but are held open take theirs."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def remove(folder: Path) -> None:
    """Remove a folder, or as much of it as can be removed; one that isn't there is no error."""
    subprocess.run(["/bin/rm", "-rf", "--", str(folder)], capture_output=True, check=False)


def _du(folder: Path, unit: str) -> int:
    """Run du; what vanishes under its hands makes it complain, but it still gives the sum."""
    command = ["/usr/bin/du", "--summarize", unit, "--", str(folder)]
    done = subprocess.run(command, capture_output=True, timeout=_MOST_SECONDS, check=False)
    return int(done.stdout.partition(b"\t")[0])
