"""Who still runs: processes by real user id, read from /proc, and their end."""

import os
import signal
import time
from pathlib import Path


class StillRunning(RuntimeError):
    """Processes of a run can't be ended; the machine needs an operator."""


def processes_of(uid: int) -> list[int]:
    """List the ids of live processes whose real user id is `uid`."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _runs_as(entry, uid):
            found.append(int(entry.name))
    return found


def _runs_as(entry: Path, uid: int) -> bool:
    try:
        status = (entry / "status").read_text()
    except OSError:
        return False  # it ended while we looked
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return lines.get("State", "").split()[:1] != ["Z"] and lines.get("Uid", "").split()[:1] == [str(uid)]


def end_all_of(uid: int, *, within_s: float = 10.0) -> None:
    """Kill every process of `uid` and return once none is left.

    Raises:
        StillRunning: some outlived `within_s`.
    """
    deadline = time.monotonic() + within_s
    while left := processes_of(uid):
        if time.monotonic() > deadline:
            raise StillRunning(f"processes {left} of user {uid} don't end")
        for pid in left:
            _kill(pid)
        time.sleep(0.02)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
