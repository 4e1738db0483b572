"""Say what became of one variable of a manifest."""

from __future__ import annotations

from dataclasses import dataclass

from paddock_stack.recipe.catalogue import find_lever

OFF = ("", "0", "false", "False")
_ZERO_IS_A_VALUE = frozenset({"WARMUP_SEED"})


@dataclass(frozen=True)
class Row:
    """One variable of the manifest, or a key within one (`HF_OVERRIDES.vocab_size`), and what became of it."""

    name: str
    value: str
    fate: str
    how: str


def row_of(name: str, value: str) -> Row:
    """Return what becomes of the variable `name` where nothing else contradicts it."""
    lever = find_lever(name)
    if lever is None:
        return Row(
            name, value, "unknown", "no lever of the recipe is called so; look at what its serve.py does with it"
        )
    if value in OFF and not (value and name in _ZERO_IS_A_VALUE):
        return Row(name, value, "off", "it was not turned on")
    return Row(name, value, lever.fate.value, lever.how)
