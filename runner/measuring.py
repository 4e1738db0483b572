"""Runs the harness in a process of its own beside a served submission, and watches both."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from runner.launchers.contract import KeepGoing, Running, SubmissionFailed
from runner.launchers.means import tied_to_us

_ROOT = Path(__file__).resolve().parent.parent
_LOOK_EVERY_S = 0.1
_LAST_WORDS_S = 2.0
_SUBMISSIONS_FAULT = 3

Progress = Callable[[int, int], None]
"""Told how many requests are done, and of how many."""


class HarnessBroke(RuntimeError):
    """The harness failed through us: an incident, never a measurement."""


class RunTimedOut(Exception):
    """Measuring took longer than a run may take."""


@dataclass
class _Heard:
    done: int = 0
    total: int = 0


def measure(
    spec: Mapping[str, object],
    folder: Path,
    running: Running,
    *,
    timeout_s: float,
    keep_going: KeepGoing,
    progress: Progress,
) -> None:
    """Measure the running server; the harness's files are in `folder`/out afterwards, whatever happened.

    Raises:
        SubmissionFailed: with the harness's own code, or server_exited.
        RunTimedOut: after `timeout_s`.
        HarnessBroke: it ended in a way that is no measurement.
    """
    folder.mkdir()
    (folder / "spec.json").write_text(json.dumps(spec))
    with (folder / "stderr.txt").open("wb") as stderr:
        harness = subprocess.Popen(
            _command(folder), stdout=subprocess.PIPE, stderr=stderr, stdin=subprocess.DEVNULL, cwd=_ROOT, env=_ENV
        )
    assert harness.stdout is not None
    heard = _Heard()
    listener = threading.Thread(target=_listen, args=(harness.stdout, heard), name="harness-progress", daemon=True)
    listener.start()
    try:
        _watch(harness, heard, running, time.monotonic() + timeout_s, keep_going, progress)
    finally:
        harness.kill()
        harness.wait()
        listener.join()
    _judge_exit(harness.returncode, folder, running)


_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": str(_ROOT)}


def _command(folder: Path) -> list[str]:
    harness = [sys.executable, "-m", "runner.harness", "run"]
    return tied_to_us([*harness, "--spec", str(folder / "spec.json"), "--out", str(folder / "out")])


def _watch(
    harness: subprocess.Popen[bytes],
    heard: _Heard,
    running: Running,
    deadline: float,
    keep_going: KeepGoing,
    progress: Progress,
) -> None:
    while harness.poll() is None:
        keep_going()
        if (code := running.exit_code()) is not None:
            raise running.exited(code, "while it was measured")
        if time.monotonic() > deadline:
            raise RunTimedOut
        progress(heard.done, heard.total)
        try:
            harness.wait(_LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            continue
    progress(heard.done, heard.total)


def _listen(pipe: IO[bytes], heard: _Heard) -> None:
    with pipe:
        for line in pipe:
            try:
                told = json.loads(line)
                heard.done, heard.total = int(told["done"]), int(told["total"])
            except (ValueError, KeyError, TypeError):
                continue  # a library's own line on stdout is no progress


def _judge_exit(code: int, folder: Path, running: Running) -> None:
    if code == 0:
        return
    if code != _SUBMISSIONS_FAULT:
        lines = (folder / "stderr.txt").read_text("utf-8", "replace").strip().splitlines()
        raise HarnessBroke(f"the harness ended with exit code {code}: {lines[-1] if lines else 'no message'}")
    failure = json.loads((folder / "out" / "failure.json").read_text())
    if failure["code"] == "server_died" and (exit_code := _exit_soon(running)) is not None:
        raise running.exited(exit_code, "while it was measured")
    raise SubmissionFailed(failure["code"], failure["message"], failure.get("hint") or "")


def _exit_soon(running: Running) -> int | None:
    """Give a server whose connection broke a moment to be gone, so that its end is named and not the symptom."""
    deadline = time.monotonic() + _LAST_WORDS_S
    while (code := running.exit_code()) is None and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    return code
