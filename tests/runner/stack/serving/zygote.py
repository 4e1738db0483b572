"""Run tasks inside the server environment: vLLM is imported once, and every task is a fork of that process.

    zygote = Zygote(Path(".server-env/bin/python"))
    tokens = zygote.call("tests.runner.stack.serving.generation:generate", folder="…", prompts=[[2, 5]])

A task is a function whose arguments and result are JSON. Importing vLLM and torch takes ten seconds; a task that
starts an engine in a fork of the process that did so is ready within three.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[4]
IMPORT_TIMEOUT_S = 180.0
TASK_TIMEOUT_S = 300.0
# An engine in this very process, on the cores that it is given, without a network.
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "TORCHDYNAMO_DISABLE": "1",  # vLLM compiles its sampler's rank count even when eager; that alone takes 20 s
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_PLUGINS": "",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "PYTHONPATH": f"{ROOT / 'runner/stack/src'}{os.pathsep}{ROOT}",
}


class TaskFailed(AssertionError):
    """A task raised; the message is its traceback, or the end of what it printed when it died."""


class Zygote:
    """The process that has imported vLLM; one caller at a time."""

    def __init__(self, python: Path, log: Path) -> None:
        """Start it; what it and its tasks print goes to `log`."""
        self._log = log
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [str(python), "-m", "tests.runner.stack.serving.inside"],
                cwd=ROOT,
                env={**_inherited(), **ENVIRONMENT},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                start_new_session=True,
            )
        self._answer(IMPORT_TIMEOUT_S)

    def call(self, task: str, *, env: dict[str, str] | None = None, **arguments: Any) -> Any:
        """Run `task` ("module:function") in a fresh fork, with `env` added to its environment; return its result.

        Raises `TaskFailed` when it raises, dies or takes more than five minutes; the last ends this process as well,
        and every later call fails.
        """
        if self._process.poll() is not None:
            raise TaskFailed("the process of an earlier task is gone")
        order = json.dumps({"task": task, "arguments": arguments, "env": env or {}})
        _pipe(self._process.stdin).write(order.encode() + b"\n")
        _pipe(self._process.stdin).flush()
        told = self._answer(TASK_TIMEOUT_S)
        if "fault" in told:
            raise TaskFailed(f"{told['fault']}\n{self._tail()}")
        return told["result"]

    def close(self) -> None:
        """End the process and whatever task still runs."""
        self._kill()
        _pipe(self._process.stdin).close()
        _pipe(self._process.stdout).close()

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        line = _read_line(_pipe(self._process.stdout), timeout_s)
        if line is None:
            self._kill()
            raise TaskFailed(f"no answer within {timeout_s:.0f} s, or the process is gone\n{self._tail()}")
        told: dict[str, Any] = json.loads(line)
        return told

    def _kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-4000:]


def _inherited() -> dict[str, str]:
    """Return our environment without the virtual environment and without switches of the stack."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PADDOCK_", "VLLM_", "VIRTUAL_"))}


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _read_line(stream: IO[bytes], timeout_s: float) -> bytes | None:
    """Return the next line of `stream`, None at its end or once `timeout_s` have passed."""
    deadline, line = time.monotonic() + timeout_s, b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            read = os.read(stream.fileno(), 1 << 20)
            if not read:
                return None
            line += read
    return line
