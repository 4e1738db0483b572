"""The slices of a row's units that skinny.cu gives to the warps of the blocks that share it."""

from __future__ import annotations

from paddock_stack.skinny.plan import UNIT, Plan


def slices(chosen: Plan, columns: int) -> list[tuple[int, int]]:
    """Return (first unit, unit after the last) of each warp, block by block."""
    units, count = columns // UNIT, chosen.warps * chosen.split
    return [(units * each // count, units * (each + 1) // count) for each in range(count)]
