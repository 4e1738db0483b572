"""Run one vLLM from its start to its end: start it behind its gate, warm it up, write the record, open the gate, wait.

This process stays vLLM's parent: it hands on its log and its signals, and at a clean stop tells the record once more,
with the acceptance. No request of anybody but the warm-up passes through it.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import IO, Any

from paddock_stack.launcher import checks, command, record
from paddock_stack.launcher.acceptance import acceptance
from paddock_stack.launcher.asking import NotAnswered, Server
from paddock_stack.launcher.gate import KEY_VARIABLE
from paddock_stack.launcher.logs import Resolved
from paddock_stack.launcher.preparing import Prepared, prepare
from paddock_stack.launcher.warm_up import warm_up
from paddock_stack.profiles.schema import Machine, Profile
from paddock_stack.refusals import Refused
from paddock_stack.shapes.guard import installed

VLLM = (sys.executable, "-m", "vllm.entrypoints.openai.api_server")
_LOOK_EVERY_S = 0.2
_ONE_ANSWER_S = 5.0
_LAST_ANSWER_S = 2.0  # whoever stops us waits five seconds: paddock's runner does
_FAREWELL_S = 30.0


class Ended(Refused):
    """vLLM ended before it was ready."""


@dataclass(frozen=True)
class Address:
    """Where to serve, and under which model name."""

    host: str
    port: int
    model_name: str


def serve(profile: Profile, address: Address, base: Path, *, program: tuple[str, ...] = VLLM) -> int:
    """Serve until told to stop; return vLLM's exit status, 0 after a stop.

    `base` is the folder that relative paths are in; `program` stands in for vLLM in tests. Raises `Refused`, with no
    process left behind, for whatever keeps the server from being ready.
    """
    checks.check_environment(os.environ)
    if profile.machine is not Machine.CPU:
        checks.check_libraries(profile, installed)
    cache = cache_folder()
    prepared = prepare(profile, base, cache)
    for remark in prepared.remarks:
        print(remark, flush=True)
    key = secrets.token_hex(16)
    served = command.Served(prepared.model, prepared.drafter, address.model_name, address.host, address.port)
    words = [*program, *command.arguments(profile, served)]
    env = {**command.environment(profile, os.environ, cache), KEY_VARIABLE: key}
    print("serving with", *words, flush=True)
    process = subprocess.Popen(
        words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    )  # fmt: skip
    server = Server(address.host, address.port, key)
    return _Running(profile, prepared, process, server, record.place(cache)).until_end(address.model_name)


def cache_folder() -> Path:
    """Return the folder for bakes, views and vLLM's caches: PADDOCK_STACK_CACHE, or one in the home's cache.

    Where the home can't be written, as in a sandbox, it is a new temporary folder.
    """
    named = os.environ.get("PADDOCK_STACK_CACHE")
    folder = Path(named) if named else Path.home() / ".cache" / "paddock-stack"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        if named:
            raise Refused(f"PADDOCK_STACK_CACHE can't be made: {fault}") from fault
        folder = Path(tempfile.mkdtemp(prefix="paddock-stack-"))
    return folder.resolve()


class _Running:
    """One vLLM process, from its start to its end."""

    def __init__(
        self, profile: Profile, prepared: Prepared, process: subprocess.Popen[str], server: Server, path: Path
    ) -> None:
        self._profile, self._prepared, self._process, self._server = profile, prepared, process, server
        self._path = path
        self._resolved = Resolved()
        self._told: dict[str, Any] | None = None
        self._was_stopped = False
        self._log = threading.Thread(target=self._hand_on, args=(process.stdout,), name="log", daemon=True)

    def until_end(self, model: str) -> int:
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGTERM, signal.SIGINT)}
        self._log.start()
        try:
            self._make_ready(model)
            code = self._process.wait()
            return 0 if self._was_stopped else (code if code >= 0 else 128 - code)
        except NotAnswered as fault:
            if self._process.poll() is None and not self._was_stopped:
                raise
            raise self._ended() from fault
        finally:
            self._end()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _make_ready(self, model: str) -> None:
        self._wait_until_up()
        warmed = warm_up(self._server, model, self._profile.warm_up, self._prepared.towers)
        told = record.made(self._profile, self._prepared, self._resolved, warmed)
        record.write(told, self._path)
        _say(record.LINE + json.dumps(told, sort_keys=True))
        _say(f"ready after a warm-up of {warmed.seconds:g} s; the record is {self._path}")
        self._told = told  # from here on `_stop` prints, so this thread may not
        self._server.open_gate()

    def _wait_until_up(self) -> None:
        while not replace(self._server, timeout_s=_ONE_ANSWER_S).is_up():
            try:
                self._process.wait(_LOOK_EVERY_S)
            except subprocess.TimeoutExpired:
                continue
            raise self._ended()

    def _ended(self) -> Ended:
        if self._was_stopped:
            return Ended("it was stopped before it was ready")
        return Ended(f"vLLM ended with status {self._process.wait()} before it was ready; its log above says why")

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        """Tell the record again, if there is one yet, with the acceptance; let vLLM go. The second signal kills it."""
        if self._was_stopped:
            self._process.kill()
            return
        self._was_stopped = True
        if self._told is not None:
            self._add_acceptance(self._told)
            _say("told to stop; what vLLM says of its end is left out")
        self._process.terminate()

    def _add_acceptance(self, told: dict[str, Any]) -> None:
        try:
            counted = acceptance(replace(self._server, timeout_s=_LAST_ANSWER_S).metrics())
        except NotAnswered as fault:
            _say(f"the acceptance is not in the record: {fault}")
            return
        whole = {**told, "acceptance": counted}
        _say(record.LINE + json.dumps(whole, sort_keys=True))  # a job keeps the log, not our files
        record.write(whole, self._path)

    def _end(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_FAREWELL_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._log.join(_ONE_ANSWER_S)

    def _hand_on(self, log: IO[str]) -> None:
        """Hand vLLM's log on; not that of a clean end, which reads like a crash (EngineDeadError)."""
        for line in log:
            if self._was_stopped and self._told is not None:
                continue
            _say(line.rstrip("\n"))
            self._resolved.see(line)


def _say(line: str) -> None:
    """Write a line in one piece: vLLM's log is written beside it, by a thread of its own."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
