"""What every launcher does alike: lay out one submission, install what it needs, serve it, stop it whole.

A launcher is driven by the worker's own thread, one submission at a time. Whatever happens, `stop()` leaves no
process of the submission behind. A failure that is the submission's raises `SubmissionFailed`; anything else that
is raised is an incident of ours.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runner.manifests import Manifest
from storage.errors import BadGateway, Corrupt, NotFound

_log = logging.getLogger(__name__)

KeepGoing = Callable[[], None]
"""Called often while something is waited for; it raises when the job was cancelled, timed out or lost."""


class JobsDisabled(NotFound):
    """Submissions of this user, or of anybody, aren't run on this machine; the message says what is missing."""

    code = "JOBS_DISABLED"


class JobLaunchFailed(BadGateway):
    """A run could not be started for a reason of ours; nothing was queued and nothing spent."""

    code = "JOB_LAUNCH_FAILED"


@contextmanager
def launching() -> Iterator[None]:
    """Make a fault of the disk or the store, met while a run is being queued, one that its owner can act on.

    Raises:
        JobLaunchFailed: there was one; the caller rolls back.
    """
    try:
        yield
    except (OSError, Corrupt) as error:
        _log.exception("a run could not be queued")
        raise JobLaunchFailed(
            "The run could not be started; nothing was queued and nothing spent.", hint="Try again in a few minutes."
        ) from error


class SubmissionFailed(Exception):
    """The submission did what `code` names; `message` is one sentence for its owner, `log` the failed stage's own."""

    def __init__(self, code: str, message: str, hint: str = "", log: str = "") -> None:
        super().__init__(message)
        self.log = log
        self.code = code
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class LaunchSpec:
    """One submission to serve.

    `submission` is its snapshot on disk and `workspace` an empty folder for this run alone; the launcher may
    write there. `user` is the person whose submission it is.
    """

    run_id: str
    user: str
    manifest: Manifest
    submission: Path
    workspace: Path


class Running(Protocol):
    """A served submission, from its first process to its last."""

    @property
    def address(self) -> Path:
        """The unix socket that leads to the server's port."""

    def wait_ready(self, timeout_s: float, keep_going: KeepGoing) -> float:
        """Wait until `GET /v1/models` answers 200 with JSON; return the seconds it took.

        Raises:
            SubmissionFailed: server_not_ready or server_exited. The server is not stopped.
        """

    def exit_code(self) -> int | None:
        """Return the server's exit code (128 + signal), or None while it runs."""

    def exited(self, code: int, when: str) -> SubmissionFailed:
        """Describe an exit that nobody asked for, with the server's last lines."""

    def stop(self) -> None:
        """Send the server SIGTERM, kill what is left soon after, return once nothing is; again does nothing."""

    def log(self) -> str:
        """Return what it wrote to stdout and stderr so far, capped, with a line for what was left out."""


class Launcher(Protocol):
    """Serves submissions in one way; one conformance suite runs against all of them."""

    def refusal(self, user: str) -> str | None:
        """Say in one sentence why `user`'s submissions aren't run here, or return None."""

    def prepare(self, spec: LaunchSpec, keep_going: KeepGoing) -> str:
        """Install the manifest's dependencies in a stage of their own; return that stage's log.

        Raises:
            SubmissionFailed: install_failed. Nothing of the stage runs on.
            JobsDisabled: this user's submissions aren't run here.
        """

    def launch(self, spec: LaunchSpec) -> Running:
        """Start serving a prepared submission.

        Raises:
            JobsDisabled: this user's submissions aren't run here.
        """

    def environment(self) -> Mapping[str, object]:
        """Describe what confines a run here and what is missing, for the run's record."""
