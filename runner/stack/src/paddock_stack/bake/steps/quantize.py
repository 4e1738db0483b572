"""Quantise matrices by rounding to nearest, or quantise them anew in other groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from paddock_stack.bake import layout, quantization
from paddock_stack.bake.checkpoint import Checkpoint, replaced
from paddock_stack.bake.integers import Scheme, quantise
from paddock_stack.bake.layout import BODY, PATTERNS, Kind, Matrix
from paddock_stack.bake.names import PACKED_FORM, module_of
from paddock_stack.bake.steps.step import Models, Step, Words
from paddock_stack.bake.text_config import Config
from paddock_stack.refusals import Refused

BODY_WORDS = tuple(str(kind) for kind in BODY)
MODULES_HELP = f"which matrices: some of {', '.join((*BODY_WORDS, Kind.HEAD))}; without it all but the head"


@dataclass(frozen=True)
class Quantize(Step):
    """Quantise the float matrices of the kinds `modules` to `bits`, one scale for `group_size` columns."""

    NAME = "quantize"
    SUMMARY = "round matrices to small integers (compressed-tensors, pack-quantized)"

    bits: int = field(default=4, metadata={"help": "4 (default) or 8"})
    group_size: int = field(default=32, metadata={"help": "columns to a scale: 32 (default), 128, …, -1 for a row"})
    modules: Words = field(default=BODY_WORDS, metadata={"help": MODULES_HELP})

    def apply(self, models: Models) -> Models:
        """Return the models with the matrices packed; a matrix that is packed already is refused."""
        before = models.the_target(self.NAME)
        chosen = chosen_matrices(before, self.modules)
        packed = [matrix.module for matrix in chosen if scheme_now(before, matrix) is not None]
        if packed:
            raise Refused(f"{packed[0]} is quantised already; regroup quantises anew")
        return dataclasses.replace(models, target=quantise_all(before, chosen, Scheme(self.bits, self.group_size)))


@dataclass(frozen=True)
class Regroup(Step):
    """Dequantise the packed matrices of the kinds `modules` and quantise them with another group size."""

    NAME = "regroup"
    SUMMARY = "quantise packed matrices anew with another group size (costs accuracy; better from the float master)"

    group_size: int = field(metadata={"help": "columns to a scale: 32, 128, …, -1 for a row"})
    bits: int = field(default=4, metadata={"help": "4 (default) or 8"})
    modules: Words = field(default=BODY_WORDS, metadata={"help": MODULES_HELP})

    def apply(self, models: Models) -> Models:
        """Return the models with those matrices of the kinds that are packed in their new groups."""
        before, new = models.the_target(self.NAME), Scheme(self.bits, self.group_size)
        packed = [matrix for matrix in chosen_matrices(before, self.modules) if scheme_now(before, matrix)]
        if not packed:
            raise Refused(f"none of {', '.join(self.modules)} is quantised, so there is nothing to regroup")
        changed = [matrix for matrix in packed if scheme_now(before, matrix) != new]
        return dataclasses.replace(models, target=quantise_all(before, changed, new))


def scheme_now(checkpoint: Checkpoint, matrix: Matrix) -> Scheme | None:
    """Return how `matrix` is quantised, or None."""
    return quantization.scheme_of(checkpoint.config, matrix.module, matrix.of_class)


def chosen_matrices(checkpoint: Checkpoint, modules: Words) -> list[Matrix]:
    """Return the matrices that the words of `--modules` mean; raise `Refused` for an unknown or empty choice."""
    unknown = set(modules) - {str(kind) for kind in PATTERNS}
    if unknown or not modules:
        raise Refused(f"modules are some of {', '.join(PATTERNS)}, not {', '.join(sorted(unknown)) or 'none'}")
    if Kind.HEAD in modules and layout.is_tied(checkpoint.config):
        raise Refused("the head is tied to the embedding; untie-head gives it weights of its own first")
    return checkpoint.present(Kind(word) for word in modules)


def quantise_all(before: Checkpoint, chosen: Sequence[Matrix], scheme: Scheme) -> Checkpoint:
    """Return `before` with the matrices `chosen` packed under `scheme`, and a configuration that says so."""
    tensors = before.tensors
    for matrix in chosen:
        tensors = replaced(tensors, matrix.module, quantise(before.floats(matrix), scheme))
    config = quantization.copied(before.config)
    _declare(config, before, chosen, scheme)
    layout.check(config, before.names, tensors)
    return dataclasses.replace(before, config=config, tensors=tensors)


def _declare(config: Config, before: Checkpoint, chosen: Sequence[Matrix], scheme: Scheme) -> None:
    kinds = {matrix.kind for matrix in chosen}
    if quantization.part(config) is None and kinds != {Kind.HEAD}:
        quantization.start(config, scheme, [pattern for kind, pattern in PATTERNS.items() if kind not in kinds])
    elif quantization.part(config) is None:
        quantization.start_empty(config)
    modules = [matrix.module for matrix in chosen]
    packed = [module_of(name) for name in before.tensors if name.endswith(f".{PACKED_FORM[0]}")]
    quantization.rescheme(config, packed, modules, scheme)
    quantization.regard(config, modules, before.modules)
    strays = [matrix for matrix in chosen if quantization.scheme_of(config, matrix.module, matrix.of_class) != scheme]
    if strays:
        targets = [PATTERNS[kind] for kind in PATTERNS if kind in {matrix.kind for matrix in strays}]
        quantization.add_group(config, targets, scheme)
