"""Start several measurements together, so that they compile side by side, and have them measure one after another.

    python together.py CHECKPOINTS OUT SECONDS "NAME [option ...]" ...

Name a plain engine before its `+mtpK` twin, which drafts from what the first left in OUT. Prints each result, and the
last lines of a log that has none.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from measure import measured, started

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run the named measurements, in their order, and wait for all of them, at most SECONDS."""
    checkpoints, out, seconds, *names = sys.argv[1:]
    marks = Path(out) / f"marks-{time.time_ns()}"
    marks.mkdir(parents=True)
    ends = time.monotonic() + float(seconds)
    running = [_start(checkpoints, Path(out), marks, turn, names) for turn in range(len(names))]
    while running and time.monotonic() < ends:
        for each in [each for each in running if each.process.poll() is not None]:
            running.remove(each)
            started(marks, each.turn).touch()
            measured(marks, each.turn).touch()
            _report(each)
        time.sleep(0.2)
    for each in running:
        each.process.kill()
        _report(each)


class Running(NamedTuple):
    """One measurement at work."""

    turn: int
    name: str
    process: subprocess.Popen[bytes]
    log: Path


def _start(checkpoints: str, out: Path, marks: Path, turn: int, names: list[str]) -> Running:
    name, *options = shlex.split(names[turn])
    log = out / f"{turn}-{name}.log"
    command = [sys.executable, str(HERE / "measure.py"), checkpoints, name, *options]
    command += ["--barrier", str(marks), "--turn", str(turn), "--of", str(len(names)), "--ids", str(out)]
    with log.open("wb") as target:
        process = subprocess.Popen(command, stdout=target, stderr=subprocess.STDOUT, cwd=HERE)
    return Running(turn, name, process, log)


def _report(each: Running) -> None:
    lines = each.log.read_text(errors="replace").splitlines()
    results = [line for line in lines if line.startswith("RESULT ")]
    last = " | ".join(lines[-6:])[-1500:]
    print(results[-1] if results else f"{each.name}: no result ({each.process.poll()}): {last}", flush=True)


if __name__ == "__main__":
    main()
