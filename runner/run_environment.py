"""What a run ran on: machine, confinement and the packages it could import, for its record."""

import os
import platform
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from runner import harness


def describe(*, hardware: str, launcher: Mapping[str, object], server_env: Path, layer: Path) -> dict[str, object]:
    """Describe the environment of a run; names and versions only, no variable and no path of ours."""
    return {
        "hardware": hardware,
        "platform": platform.platform(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "harness_version": harness.VERSION,
        **launcher,
        "server_packages": _packages(server_env.glob("lib/python*/site-packages/*.dist-info")),
        "installed_packages": _packages(layer.glob("*.dist-info")),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


_MOST_PACKAGES = 2000


def _packages(folders: Iterable[Path]) -> list[str]:
    names = (folder.name.removesuffix(".dist-info").rpartition("-") for folder in folders)
    return sorted(f"{name}=={version}" for name, _, version in islice(names, _MOST_PACKAGES))
