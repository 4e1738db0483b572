"""Find out which of the known machines this is."""

from __future__ import annotations

import subprocess
from pathlib import Path

from paddock_stack.profiles.schema import Machine
from paddock_stack.refusals import Refused

_NAMES = {"A10G": Machine.A10G, "H200": Machine.H200}


class UnknownMachine(Refused):
    """There is a GPU that no profile has a variant for."""


def find_machine(devices: Path = Path("/dev")) -> Machine:
    """Return the machine that this is; raise `UnknownMachine` for a GPU that is neither an A10G nor an H200."""
    if not any(devices.glob("nvidia[0-9]*")):
        return Machine.CPU
    name = _gpu_name()
    for part, machine in _NAMES.items():
        if part in name:
            return machine
    raise UnknownMachine(f"no profile knows the GPU {name!r}; name the nearest with --machine a10g or --machine h200")


def _gpu_name() -> str:
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise UnknownMachine(f"nvidia-smi can't tell which GPU this is ({fault}); say it with --machine") from fault
    return done.stdout.strip().partition("\n")[0]
