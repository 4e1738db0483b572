"""Have torch's compiler hold a whole row of a norm in registers, where it would read the row three times in loops.

Its rule does so up to 1,024 numbers a row; a decoded token's one longer row then waits for three passes. Torch takes
rules from outside by `inductor_choices_class`. Held whole, a row is summed in one order however many rows there are,
and there is one shape of kernel to choose from, so nothing is timed.
"""

from __future__ import annotations

from typing import Any

from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.runtime.hints import ReductionHint
from torch._inductor.virtualized import V

WIDEST_ROW = 8192  # 32 numbers for each of 256 threads


class PersistentNorms(InductorChoices):  # type: ignore[misc]  # torch is not seen here
    """Torch's rules, but rows of up to `WIDEST_ROW` numbers that lie side by side are reduced in one piece."""

    @staticmethod
    def should_use_persistent_reduction(features: Any, cooperative_reduction: bool) -> bool:
        """Return whether the reduction that `features` tells of holds its rows in registers."""
        if not config.triton.persistent_reductions:
            return False
        if InductorChoices.should_use_persistent_reduction(features, cooperative_reduction):
            return True
        alone = features.get_reduction_hint() == ReductionHint.INNER and not cooperative_reduction
        return alone and bool(V.graph.sizevars.statically_known_leq(features.reduction_numel, WIDEST_ROW))

    def uuid(self) -> str:
        """Return what torch's caches know this rule by; torch 2.11 takes the class's name instead."""
        return f"paddock_stack.persistent_norms.{WIDEST_ROW}"


def prefer() -> None:
    """Let whatever this process compiles from now on follow these rules."""
    config.inductor_choices_class = PersistentNorms
    V.set_choices_handler(PersistentNorms())  # this thread may have made its rules already
