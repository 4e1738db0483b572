"""Fixtures of the serving stack: one process of the server environment that has imported vLLM."""

import os
from collections.abc import Iterator
from ctypes import CDLL
from pathlib import Path
from typing import Any

import pytest

from tests.runner.stack.serving.zygote import ROOT, Zygote

SERVER_ENV = Path(os.environ.get("PADDOCK_SERVER_ENV", ROOT / ".server-env"))
KERNEL_TOOLS = ROOT / ".kernel-tools"


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The process in which every task of the session runs as a fork."""
    python = SERVER_ENV / "bin/python"
    if not python.exists():
        pytest.skip(f"THE SERVER ENVIRONMENT IS ABSENT: {python} (make server-env)")
    started = Zygote(python, tmp_path_factory.mktemp("zygote") / "log")
    yield started
    started.close()


@pytest.fixture(scope="session")
def interpreter() -> dict[str, Any]:
    """What a task needs that runs Triton's code in its interpreter."""
    return {"path": str(_tool("triton")), "env": {"TRITON_INTERPRET": "1"}}


@pytest.fixture(scope="session")
def nvrtc() -> Path:
    """NVIDIA's compiler, a library that needs no GPU; it looks for its own other half among what is loaded."""
    folder = _tool("nvidia/cu13/lib") / "nvidia/cu13/lib"
    CDLL(str(next(folder.glob("libnvrtc-builtins.so.*"))))
    return folder / "libnvrtc.so.13"


def _tool(name: str) -> Path:
    """Return the folder of packages that holds `name`."""
    found = next((each for each in KERNEL_TOOLS.glob("lib/python3*/site-packages") if (each / name).exists()), None)
    assert found, f"{name} is missing in {KERNEL_TOOLS}: make kernel-tools"
    return found


@pytest.fixture(scope="session")
def checkpoints(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tiny checkpoints `text` and `multimodal`, and `drafter-text` and `drafter-multimodal` for them.

    Tests leave them as they are.
    """
    folder = tmp_path_factory.mktemp("checkpoints")
    make = "tests.runner.stack.serving.checkpoints"
    zygote.call(f"{make}:text", folder=str(folder / "text"))
    zygote.call(f"{make}:multimodal", folder=str(folder / "multimodal"))
    for target in ("text", "multimodal"):
        zygote.call(f"{make}:drafter", folder=str(folder / f"drafter-{target}"), target=str(folder / target))
    return folder
