"""Take whole layers out of the model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from paddock_stack.bake import layout, quantization
from paddock_stack.bake.checkpoint import Checkpoint, replaced
from paddock_stack.bake.integers import WHOLE_ROW, Scheme
from paddock_stack.bake.names import FLOAT_FORM, layer_of, module_of, renumbered
from paddock_stack.bake.steps.step import Models, Numbers, Step
from paddock_stack.bake.tensors import Columns, Made, Rows, Tensor, ranges_of
from paddock_stack.bake.text_config import (
    FULL,
    Config,
    first_shared,
    kinds,
    layers,
    number,
    sources,
    text_part,
    without_layers,
)
from paddock_stack.refusals import Refused

# Their norms stay: vLLM 0.23 looks for them and, without a quantisation, refuses a checkpoint that has none.
OWN_KEYS_AND_VALUES = ("self_attn.k_proj", "self_attn.v_proj")


@dataclass(frozen=True)
class DropLayers(Step):
    """Remove `layers`; what is left is numbered anew, and its embeddings per layer are cut to it."""

    NAME = "drop-layers"
    SUMMARY = "take whole layers out (this is what ruins answers; measure before you serve it)"

    layers: Numbers = field(metadata={"help": "numbers of the layers to go, from 0, e.g. 2,3,4"})

    def apply(self, models: Models) -> Models:
        """Return the models without the layers; the drafter stays, as it reads the sources by kind."""
        before = models.the_target(self.NAME)
        text = text_part(before.config)
        check(text, self.layers)
        kept = [index for index in range(number(text, "num_hidden_layers")) if index not in self.layers]
        new_numbers = {old: new for new, old in enumerate(kept)}
        cut = _without_unread(_cut_per_layer(before, kept), text)
        config = without_layers(before.config, kept)
        quantization.renumber(config, before.modules, new_numbers)
        tensors = _renumbered(cut, new_numbers)
        layout.check(config, before.names, tensors)
        after = dataclasses.replace(before, config=config, tensors=tensors)
        return dataclasses.replace(models, target=after)


def check(text: Config, dropped: Numbers) -> None:
    """Raise `Refused` where the model of `text` can't lose the layers `dropped`."""
    count, found = number(text, "num_hidden_layers"), kinds(text)
    if not dropped or len(set(dropped)) != len(dropped):
        raise Refused("drop-layers takes different layer numbers, at least one")
    if not all(0 <= index < count for index in dropped):
        raise Refused(f"the model has layers 0 to {count - 1}, so {list(dropped)} can't all go")
    if first_shared(text) < count:
        for kind, index in sources(text).items():
            if index in dropped:
                raise Refused(
                    f"layer {index} can't go: it is the last {kind} layer before the shared ones, "
                    "whose keys and values they and the drafter read"
                )
    kept = [index for index in range(count) if index not in dropped]
    if not kept or found[kept[-1]] != FULL:
        raise Refused(f"the last layer that stays must be {FULL}")
    orphans = {found[index] for index in kept if index >= first_shared(text)} - set(sources(text))
    if orphans:
        raise Refused(f"no layer before the shared ones is {' or '.join(sorted(orphans))}, which sharers need")


def _cut_per_layer(before: Checkpoint, kept: list[int]) -> dict[str, Tensor]:
    tensors = before.tensors
    width = number(text_part(before.config), "hidden_size_per_layer_input", 0)
    for matrix in before.present([layout.Kind.PER_LAYER_TABLE, layout.Kind.PER_LAYER_MODEL]):
        scheme = quantization.scheme_of(before.config, matrix.module, matrix.of_class)
        forms = {name.rpartition(".")[2]: part for name, part in tensors.items() if module_of(name) == matrix.module}
        if matrix.kind == layout.Kind.PER_LAYER_MODEL:
            new = _cut_rows(forms, kept, width)
        else:
            new = _cut_columns(forms, kept, width, scheme)
        tensors = replaced(tensors, matrix.module, new)
    return tensors


def _cut_rows(forms: Mapping[str, Tensor], kept: list[int], width: int) -> dict[str, Tensor]:
    ranges = ranges_of(kept, width)
    made: dict[str, Tensor] = {form: Rows(part, ranges) for form, part in forms.items() if form != "weight_shape"}
    if "weight_shape" in forms:
        made["weight_shape"] = Made((len(kept) * width, _columns_of(forms)))
    return made


def _columns_of(forms: Mapping[str, Tensor]) -> int:
    """Return how many columns a packed matrix with 32-bit words has, read from the tensor that says so."""
    return int(forms["weight_shape"].rows(0, 2)[1])


def _cut_columns(forms: Mapping[str, Tensor], kept: list[int], width: int, scheme: Scheme | None) -> dict[str, Tensor]:
    if scheme is None:
        return {FLOAT_FORM: Columns(forms[FLOAT_FORM], ranges_of(kept, width))}
    if width * scheme.bits % 32 or (scheme.group_size != WHOLE_ROW and width % scheme.group_size):
        raise Refused(f"the table's {width} columns a layer don't fall on whole words and groups of its quantisation")
    scales = forms["weight_scale"]
    if scheme.group_size != WHOLE_ROW:
        scales = Columns(scales, ranges_of(kept, width // scheme.group_size))
    shape = Made((scales.shape[0], len(kept) * width))
    words = Columns(forms["weight_packed"], ranges_of(kept, scheme.words(width)))
    return {"weight_packed": words, "weight_scale": scales, "weight_shape": shape}


def _without_unread(tensors: dict[str, Tensor], text: Config) -> dict[str, Tensor]:
    """Leave out the products for keys and values that checkpoints still carry for layers that read another's."""
    sharers = {index for index, layer in enumerate(layers(text)) if layer.is_sharer}
    return {
        name: tensor
        for name, tensor in tensors.items()
        if not (layer_of(name) in sharers and module_of(name).endswith(OWN_KEYS_AND_VALUES))
    }


def _renumbered(tensors: dict[str, Tensor], new_numbers: Mapping[int, int]) -> dict[str, Tensor]:
    named = ((renumbered(name, new_numbers), tensor) for name, tensor in tensors.items())
    return {name: tensor for name, tensor in named if name is not None}
