"""The stage that installs what a manifest names: network, but no data of ours, no secret, and a stop at its caps."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from runner.launchers import trees
from runner.launchers.contract import KeepGoing, SubmissionFailed
from runner.launchers.served import Group

MOST_BYTES = 20_000_000_000
MOST_ENTRIES = 500_000
LEAST_FREE_BYTES = 2_000_000_000
MOST_SECONDS = 1800.0
_LOOK_EVERY_S = 0.2
_FROM_OPERATOR = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def uv_binary() -> Path:
    """Find the installer beside our own interpreter."""
    return Path(sys.executable).with_name("uv")


def command(uv: Path, python: Path, target: Path, requirements: Sequence[str]) -> list[str]:
    """Build the install command; `--` keeps a requirement from being read as an option."""
    return [str(uv), "pip", "install", "--python", str(python), "--target", str(target), "--", *requirements]


def variables(cache: Path) -> dict[str, str]:
    """The installer's variables: the operator's index and proxy, unless the address carries a password."""
    passed = {name: os.environ[name] for name in (*_FROM_OPERATOR, *_CERTIFICATES) if name in os.environ}
    public = {name: value for name, value in passed.items() if urlsplit(value).password is None and "@" not in value}
    fixed = {"UV_CACHE_DIR": str(cache), "UV_LINK_MODE": "copy", "UV_NO_CONFIG": "1", "UV_PYTHON_DOWNLOADS": "never"}
    return {**public, **fixed, "UV_NO_PROGRESS": "1"}


class DiskFull(RuntimeError):
    """There was no room to install anything before the stage began: an incident of ours."""


def check_room(folder: Path) -> None:
    """Refuse to begin a stage where its disk is full already.

    Raises:
        DiskFull: less than `LEAST_FREE_BYTES` are left.
    """
    if not (trees.free_bytes(folder) >= LEAST_FREE_BYTES):
        raise DiskFull(f"less than {LEAST_FREE_BYTES} bytes are free for installing dependencies")


def watch(group: Group, layer: Path, keep_going: KeepGoing) -> str:
    """Wait for the installer's end within its caps and return its log. The caller stops the group.

    Raises:
        SubmissionFailed: install_failed.
    """
    deadline = time.monotonic() + MOST_SECONDS
    while (code := group.exit_code()) is None:
        keep_going()
        if time.monotonic() > deadline:
            raise _failed(f"took longer than {MOST_SECONDS:g} s", group)
        if excess := _excess(layer):
            raise _failed(excess, group)
        group.wait(_LOOK_EVERY_S)
    group.captured.finish(within_s=5.0)
    if code != 0:
        raise _failed(f"ended with exit code {code}", group)
    if excess := _excess(layer):
        raise _failed(excess, group)
    return group.captured.text()


def _failed(what: str, group: Group) -> SubmissionFailed:
    lines = group.captured.last_lines(4)
    message = f"Installing the dependencies {what}. Its last lines: {lines}"
    return SubmissionFailed("install_failed", message, "See job_logs.txt.", log=group.captured.text())


def _excess(layer: Path) -> str:
    """Say which cap the layer is over, if any; files that were deleted but are held open show in the disk's room."""
    found = trees.measure(layer)
    if found is None or not (found.entries <= MOST_ENTRIES):
        return f"made more than {MOST_ENTRIES} files"
    if not (found.size_bytes <= MOST_BYTES):
        return f"wrote more than {MOST_BYTES} bytes"
    if not (trees.free_bytes(layer) >= LEAST_FREE_BYTES):
        return f"left less than {LEAST_FREE_BYTES} bytes on the disk"
    return ""
