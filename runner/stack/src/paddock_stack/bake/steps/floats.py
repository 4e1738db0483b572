"""Turn single kinds of packed matrices back into floats."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from paddock_stack.bake import layout, quantization
from paddock_stack.bake.checkpoint import replaced
from paddock_stack.bake.names import FLOAT_FORM
from paddock_stack.bake.steps.quantize import scheme_now
from paddock_stack.bake.steps.step import Models, Step
from paddock_stack.refusals import Refused

GATE = "per_layer_input_gate"


@dataclass(frozen=True)
class DequantPleGate(Step):
    """Dequantise each layer's per-layer input gate.

    Its 256 outputs are too few for Marlin: on an A10G the packed product took 20.8 µs where floats take 5.8 µs.
    """

    NAME = "dequant-ple-gate"
    SUMMARY = "turn the per-layer input gates back into floats, which are faster there than int4"

    def apply(self, models: Models) -> Models:
        """Return the models with the gates in floats and left out of the quantisation."""
        before = models.the_target(self.NAME)
        gates = [matrix for matrix in before.present([layout.Kind.PER_LAYER]) if matrix.module.endswith(GATE)]
        packed = [matrix for matrix in gates if scheme_now(before, matrix)]
        if not packed:
            raise Refused("no per-layer input gate is quantised, so there is none to dequantise")
        tensors = before.tensors
        for matrix in packed:
            tensors = replaced(tensors, matrix.module, {FLOAT_FORM: before.floats(matrix)})
        config = quantization.copied(before.config)
        quantization.ignore(config, rf"re:.*{GATE}$")
        layout.check(config, before.names, tensors)
        return dataclasses.replace(models, target=dataclasses.replace(before, config=config, tensors=tensors))
