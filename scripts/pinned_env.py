"""Build an environment of pinned packages that only tests need, beside ours.

    python scripts/pinned_env.py .venv-clients/oldest scripts/client-requirements.txt

A second run returns at once: a stamp holds the digest of the requirements, of this file and of Python's version.
"""

import fcntl
import hashlib
import platform
import shutil
import subprocess
import sys
from pathlib import Path

STAMP = "paddock-stamp"


def main(arguments: list[str]) -> int:
    """Build the environment; return 0, or 1 after one sentence on stderr."""
    if len(arguments) != 2:
        print("usage: pinned_env.py FOLDER REQUIREMENTS", file=sys.stderr)
        return 1
    target, requirements = (Path(each).absolute() for each in arguments)
    try:
        build(target, requirements)
    except subprocess.CalledProcessError as fault:
        print(f"{target}: {fault.cmd[1]} failed: {fault.stdout.strip()[-2000:]}", file=sys.stderr)
        return 1
    return 0


def build(target: Path, requirements: Path) -> None:
    """Bring `target` up to date, one builder at a time; a fault leaves it without its stamp."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f".{target.name.lstrip('.')}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = target / STAMP
        if stamp.is_file() and stamp.read_text() == fingerprint(requirements):
            return
        shutil.rmtree(target, ignore_errors=True)
        uv = _uv()
        _call([uv, "venv", "--quiet", "--python", sys.executable, str(target)])
        python = str(target / "bin/python")
        _call([uv, "pip", "install", "--quiet", "--python", python, "--no-deps", "-r", str(requirements)])
        stamp.write_text(fingerprint(requirements))
        print(f"{target} is built", flush=True)


def fingerprint(requirements: Path) -> str:
    """Return the hex SHA-256 of all that decides what the environment holds."""
    parts = (requirements.read_bytes(), Path(__file__).read_bytes(), platform.python_version().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.is_file() else shutil.which("uv") or "uv"


def _call(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
