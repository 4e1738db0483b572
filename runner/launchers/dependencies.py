"""The stage that installs what a manifest names: network, but no data of ours, no secret, and a stop at its caps."""

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from runner.launchers.contract import KeepGoing, SubmissionFailed
from runner.launchers.served import Group

MOST_BYTES = 20_000_000_000
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
        if not (size_bytes(layer) <= MOST_BYTES):
            raise _failed(f"wrote more than {MOST_BYTES} bytes", group)
        group.wait(_LOOK_EVERY_S)
    group.captured.finish(within_s=5.0)
    if code != 0:
        raise _failed(f"ended with exit code {code}", group)
    return group.captured.text()


def _failed(what: str, group: Group) -> SubmissionFailed:
    lines = group.captured.last_lines(4)
    message = f"Installing the dependencies {what}. Its last lines: {lines}"
    return SubmissionFailed("install_failed", message, "See job_logs.txt.", log=group.captured.text())


def size_bytes(folder: Path) -> int:
    """Add up the files below `folder`, without following a link; what vanishes meanwhile counts nothing."""
    total = 0
    for parent, _folders, files in os.walk(folder):
        for name in files:
            try:
                total += (Path(parent) / name).lstat().st_size
            except FileNotFoundError:
                continue
    return total
