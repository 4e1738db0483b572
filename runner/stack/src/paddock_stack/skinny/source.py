"""Say how skinny.cu is compiled: its text, and what is set at compile time. Needs neither torch nor a GPU."""

from __future__ import annotations

from importlib.resources import files

from paddock_stack.skinny.plan import Plan


def text() -> bytes:
    """Return skinny.cu."""
    return files("paddock_stack.skinny").joinpath("skinny.cu").read_bytes()


def options(bits: int, group: int, plan: Plan, capability: tuple[int, int]) -> list[bytes]:
    """Return the compiler's options for weights of `bits`, scales of `group` columns (0: one a row) and a compute
    capability, (9, 0) say."""
    major, minor = capability
    settings = {"BITS": bits, "GROUP": group, "WARPS": plan.warps, "TILES": plan.tiles, "DEPTH": plan.depth}
    defines = [f"-D{name}={value}".encode() for name, value in settings.items()]
    return [f"--gpu-architecture=sm_{major}{minor}".encode(), *defines]
