"""What this machine offers to confine a submission with, looked at once."""

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Means:
    """The programs that confine a run; None where one isn't installed."""

    bwrap: str | None
    setpriv: str | None
    is_root: bool
    sandbox_works: bool = True

    def missing(self) -> list[str]:
        """List what a sandbox needs and this machine lacks."""
        needs = {
            "bubblewrap is not installed": self.bwrap is not None,
            "setpriv is not installed": self.setpriv is not None,
            "the worker is not root, so it can't run a submission as another user": self.is_root,
        }
        missing = [sentence for sentence, held in needs.items() if not held]
        if not missing and not self.sandbox_works:
            return ["bubblewrap can't make a sandbox here (a container without the right to make namespaces?)"]
        return missing


@functools.cache
def find_means() -> Means:
    """Look for what this machine has, and try it once."""
    bwrap, setpriv, is_root = shutil.which("bwrap"), shutil.which("setpriv"), os.geteuid() == 0
    works = bwrap is not None and setpriv is not None and is_root and _makes_a_sandbox(bwrap, setpriv)
    return Means(bwrap=bwrap, setpriv=setpriv, is_root=is_root, sandbox_works=works)


def _makes_a_sandbox(bwrap: str, setpriv: str) -> bool:
    spaces = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--proc", "/proc", "--dev", "/dev")
    drop = (setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs")
    command = [bwrap, "--ro-bind", "/", "/", *spaces, "--", *drop, "--bounding-set=-all", "/bin/true"]
    return subprocess.run(command, capture_output=True, timeout=30, check=False).returncode == 0


def python_prefix(environment: Path) -> Path:
    """Find the real prefix of the Python that a virtual environment stands on.

    Raises:
        FileNotFoundError: the folder is no virtual environment.
    """
    for line in (environment / "pyvenv.cfg").read_text().splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return Path(value.strip()).resolve().parent
    raise FileNotFoundError(f"{environment}/pyvenv.cfg names no home")


def tied_to_us(command: list[str]) -> list[str]:
    """Let the kernel end `command` with the thread that starts it, where setpriv is found."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else command
