"""A process group of ours that serves or installs a submission: started, watched and ended as one."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import IO

from runner.launchers import layout
from runner.launchers.captured import Captured
from runner.launchers.contract import KeepGoing, SubmissionFailed
from runner.launchers.doors import Doors, has_started
from runner.launchers.ready import is_ready

_LOOK_EVERY_S = 0.1
_ONE_ANSWER_S = 5.0
_ROOM_S = 5.0  # for the first process to end what outlived the farewell
_JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'


class Group:
    """One process group and its captured output. Once it started, `cleanup` is its own and runs after its end.

    A byte in the `lifeline` asks the group to end by itself, before it is killed: the server with a last word, and
    without a sandbox what left the group.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        log_bytes: int,
        cleanup: ExitStack,
        joins: Sequence[str] = (),
        pass_fds: Sequence[int] = (),
        lifeline: IO[bytes] | None = None,
    ) -> None:
        whole = ["/bin/sh", "-c", _JOIN, "sh", *joins, "--", *argv] if joins else list(argv)
        self._lifeline = lifeline
        self._stopped = False
        self._process = subprocess.Popen(
            whole,
            env=dict(env),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=pass_fds,
        )
        self._cleanup = cleanup.pop_all()
        assert self._process.stdout is not None
        self.captured = Captured(self._process.stdout, most_bytes=log_bytes)

    def exit_code(self) -> int | None:
        """Return the exit code (128 + signal), or None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def wait(self, timeout_s: float) -> None:
        """Wait until it ends, but no longer than `timeout_s`."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return

    def stop(self) -> None:
        """Ask the group to end, kill it, whose leader may be gone already, and clean up; again does nothing."""
        if self._stopped:
            return
        self._stopped = True
        if self._lifeline is not None:
            with suppress(BrokenPipeError):  # it has ended already
                self._lifeline.write(b".")
            self.wait(layout.FAREWELL_S + _ROOM_S)
        _kill_group(self._process.pid)
        self._process.wait()
        self._cleanup.close()
        self.captured.finish(within_s=5.0)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return  # all its processes have ended by themselves


class SandboxBroke(RuntimeError):
    """What surrounds a submission couldn't be set up: an incident of ours."""


class Served:
    """A submission being served; see `runner.launchers.contract.Running`."""

    def __init__(self, group: Group, doors: Doors) -> None:
        self._group = group
        self._started_out = doors.started_out
        self.address = doors.address

    def wait_ready(self, timeout_s: float, keep_going: KeepGoing) -> float:
        """Wait for the first good answer; see the contract."""
        started = time.monotonic()
        while (waited := time.monotonic() - started) < timeout_s:
            keep_going()
            if (code := self.exit_code()) is not None:
                raise self.exited(code, "before it was ready")
            if is_ready(self.address, within_s=min(_ONE_ANSWER_S, timeout_s - waited)):
                return time.monotonic() - started
            self._group.wait(_LOOK_EVERY_S)
        raise SubmissionFailed(
            "server_not_ready",
            f"GET /v1/models did not answer 200 with JSON within {timeout_s:g} s.{self._last_lines()}",
            "See job_logs.txt for what the server was doing.",
        )

    def exited(self, code: int, when: str) -> SubmissionFailed:
        """Describe an exit that nobody asked for.

        Raises:
            SandboxBroke: the submission never began: the fault is ours.
        """
        self._group.captured.finish(within_s=1.0)
        if not has_started(self._started_out):
            raise SandboxBroke(f"the stage ended with code {code} before its first process.{self._last_lines()}")
        return SubmissionFailed(
            "server_exited",
            f"The server exited with code {code} {when}.{self._last_lines()}",
            "See job_logs.txt for its whole output.",
        )

    def _last_lines(self) -> str:
        lines = self._group.captured.last_lines(3)
        return f" Its last lines: {lines}" if lines else ""

    def exit_code(self) -> int | None:
        """Return the server's exit code, or None while it runs."""
        return self._group.exit_code()

    def stop(self) -> None:
        """Leave no process behind."""
        self._group.stop()

    def log(self) -> str:
        """Return the captured output."""
        return self._group.captured.text()
