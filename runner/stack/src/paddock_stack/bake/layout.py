"""List the modules that a configuration promises, with their sizes, and hold a checkpoint's tensors against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from paddock_stack import keepset
from paddock_stack.bake import quantization
from paddock_stack.bake.dtypes import FLOATS
from paddock_stack.bake.integers import Scheme
from paddock_stack.bake.names import FLOAT_FORM, PACKED_FORM, Names, layer_of
from paddock_stack.bake.tensors import Tensor
from paddock_stack.bake.text_config import FULL, Config, Layer, layers, number, text_part
from paddock_stack.refusals import Refused


class Kind(StrEnum):
    """Name what a matrix does, and with it which command line words mean it."""

    ATTENTION = "attention"
    MLP = "mlp"
    PER_LAYER = "per-layer"
    PER_LAYER_MODEL = "per-layer-model"
    HEAD = "head"
    EMBEDDING = "embedding"
    PER_LAYER_TABLE = "per-layer-table"


BODY = (Kind.ATTENTION, Kind.MLP, Kind.PER_LAYER, Kind.PER_LAYER_MODEL)
# Patterns for quantisation configurations. Those in front of the group meaning mustn't meet the towers' modules,
# which go by the same names, so a tower's name may not come before.
PATTERNS = {
    Kind.ATTENTION: r"re:(?!.*tower).*layers\.\d+\.self_attn\.[qkvo]_proj$",
    Kind.MLP: r"re:(?!.*tower).*layers\.\d+\.mlp\.(gate|up|down)_proj$",
    Kind.PER_LAYER: r"re:.*layers\.\d+\.per_layer_(input_gate|projection)$",
    Kind.PER_LAYER_MODEL: r"re:.*per_layer_model_projection$",
    Kind.HEAD: r"re:.*lm_head$",
}


@dataclass(frozen=True)
class Matrix:
    """Say what the configuration promises of one weight matrix `[rows, columns]`."""

    module: str
    kind: Kind
    rows: int
    columns: int
    optional: bool = False

    @property
    def of_class(self) -> str:
        """Return the class by which quantisation configurations call it."""
        classes = {Kind.EMBEDDING: "Embedding", Kind.PER_LAYER_TABLE: "Embedding", Kind.HEAD: "ParallelLMHead"}
        return classes.get(self.kind, "Linear")


@dataclass(frozen=True)
class Vector:
    """Say what the configuration promises of one norm or scalar.

    Served models do without an `optional` one: a layer that reads another's keys norms none, and no scalar is a one.
    """

    name: str
    size: int
    optional: bool = False


def matrices(config: Config, names: Names, head_rows: int | None = None) -> list[Matrix]:
    """Return every weight matrix of the language model, its head with `head_rows` where `config` can't tell."""
    text = text_part(config)
    if text.get("enable_moe_block") or text.get("num_experts"):
        raise Refused("the model has experts; this stack takes dense Gemma 4 models only")
    found = list(_outer(text, names, is_tied(config), head_rows))
    for index, layer in enumerate(layers(text)):
        found += _of_layer(text, names.layer(index), layer)
    return found


def is_tied(config: Config) -> bool:
    """Return whether the head is the token embedding."""
    return bool(text_part(config).get("tie_word_embeddings", config.get("tie_word_embeddings", True)))


def unnamed_rows(config: Config, names: Names, tensors: Mapping[str, Tensor]) -> int | None:
    """Return the number of rows of a head that was cut elsewhere, so that `config` doesn't say whose; None for others.

    Only `prune-head --of` can turn such a checkpoint into another: which token a row scores is not in it.
    """
    text = text_part(config)
    if is_tied(config) or keepset.from_config(text) is not None:
        return None
    held = (tensors.get(f"{names.head}.{form}") for form in (FLOAT_FORM, PACKED_FORM[0]))
    rows = next((tensor.shape[0] for tensor in held if tensor is not None and tensor.shape), None)
    return rows if rows is not None and rows < number(text, "vocab_size") else None


def _outer(text: Config, names: Names, tied: bool, head_rows: int | None) -> Iterator[Matrix]:
    hidden, vocab = number(text, "hidden_size"), number(text, "vocab_size")
    yield Matrix(names.embedding, Kind.EMBEDDING, vocab, hidden)
    if not tied:
        kept = keepset.from_config(text)
        yield Matrix(names.head, Kind.HEAD, head_rows or (len(kept.ids) if kept else vocab), hidden)
    width = number(text, "hidden_size_per_layer_input", 0) * number(text, "num_hidden_layers")
    if width:
        table = number(text, "vocab_size_per_layer_input", vocab)
        yield Matrix(names.per_layer_table, Kind.PER_LAYER_TABLE, table, width)
        yield Matrix(names.per_layer_projection, Kind.PER_LAYER_MODEL, width, hidden)


def _of_layer(text: Config, prefix: str, layer: Layer) -> Iterator[Matrix]:
    hidden, per_layer = number(text, "hidden_size"), number(text, "hidden_size_per_layer_input", 0)
    queries = number(text, "num_attention_heads") * layer.head_dim
    keys = layer.kv_heads * layer.head_dim
    no_values = layer.is_sharer or (bool(text.get("attention_k_eq_v")) and layer.kind == FULL)
    attention, mlp = f"{prefix}self_attn.", f"{prefix}mlp."
    yield Matrix(f"{attention}q_proj", Kind.ATTENTION, queries, hidden)
    yield Matrix(f"{attention}k_proj", Kind.ATTENTION, keys, hidden, optional=layer.is_sharer)
    yield Matrix(f"{attention}v_proj", Kind.ATTENTION, keys, hidden, optional=no_values)
    yield Matrix(f"{attention}o_proj", Kind.ATTENTION, hidden, queries)
    yield Matrix(f"{mlp}gate_proj", Kind.MLP, layer.intermediate, hidden)
    yield Matrix(f"{mlp}up_proj", Kind.MLP, layer.intermediate, hidden)
    yield Matrix(f"{mlp}down_proj", Kind.MLP, hidden, layer.intermediate)
    if per_layer:
        yield Matrix(f"{prefix}per_layer_input_gate", Kind.PER_LAYER, per_layer, hidden)
        yield Matrix(f"{prefix}per_layer_projection", Kind.PER_LAYER, hidden, per_layer)


def vectors(config: Config, names: Names) -> Iterator[Vector]:
    """Yield the language model's norms and scalars."""
    text = text_part(config)
    hidden, per_layer = number(text, "hidden_size"), number(text, "hidden_size_per_layer_input", 0)
    yield Vector(f"{names.prefix}norm.weight", hidden)
    if per_layer:
        yield Vector(f"{names.prefix}per_layer_projection_norm.weight", per_layer)
    for index, layer in enumerate(layers(text)):
        prefix = names.layer(index)
        for norm in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
            yield Vector(f"{prefix}{norm}_layernorm.weight", hidden)
        yield Vector(f"{prefix}self_attn.q_norm.weight", layer.head_dim)
        yield Vector(f"{prefix}self_attn.k_norm.weight", layer.head_dim, optional=layer.is_sharer)
        if per_layer:
            yield Vector(f"{prefix}post_per_layer_input_norm.weight", hidden)
        yield Vector(f"{prefix}layer_scalar", 1, optional=True)


def check(config: Config, names: Names, tensors: Mapping[str, Tensor], head_rows: int | None = None) -> None:
    """Raise `Refused` unless `tensors` are those that `config` promises, in number, form and shape.

    `head_rows` stands in for the head's rows where `config` can't tell them.
    """
    count = number(text_part(config), "num_hidden_layers")
    beyond = next((name for name in tensors if (layer_of(name) or 0) >= count), None)
    if beyond is not None:
        raise Refused(f"config.json has {count} layers, but the weights hold {beyond}")
    if is_tied(config) and any(name.startswith(f"{names.head}.") for name in tensors):
        raise Refused("config.json ties the head to the embedding, but the weights hold a head of its own")
    for matrix in matrices(config, names, head_rows):
        _check_matrix(matrix, quantization.scheme_of(config, matrix.module, matrix.of_class), tensors)
    for vector in vectors(config, names):
        _check_vector(vector, tensors.get(vector.name))


def _check_vector(vector: Vector, held: Tensor | None) -> None:
    if held is None and not vector.optional:
        raise Refused(f"the weights lack {vector.name}, which config.json promises")
    if held is not None and held.shape != (vector.size,):
        raise Refused(f"{vector.name} has the shape {list(held.shape)}, but config.json makes it [{vector.size}]")


def _check_matrix(matrix: Matrix, scheme: Scheme | None, tensors: Mapping[str, Tensor]) -> None:
    stem = f"{matrix.module}."
    floats, packs = f"{stem}{FLOAT_FORM}" in tensors, f"{stem}{PACKED_FORM[0]}" in tensors
    if not floats and not packs:
        if matrix.optional:
            return
        raise Refused(f"the weights lack {matrix.module}, which config.json promises")
    if (floats and packs) or packs != (scheme is not None):
        raise Refused(f"{matrix.module} is {'packed' if packs else 'in floats'}, but config.json says otherwise")
    shapes = scheme.shapes(matrix.rows, matrix.columns) if scheme else {FLOAT_FORM: (matrix.rows, matrix.columns)}
    for form, shape in shapes.items():
        held = tensors.get(stem + form)
        if held is None or held.shape != shape:
            seen = "is missing" if held is None else f"has the shape {list(held.shape)}"
            raise Refused(f"{stem}{form} {seen}, but config.json makes it {list(shape)}")
        _check_dtype(stem + form, held.dtype, form)


def _check_dtype(name: str, dtype: str, form: str) -> None:
    fitting = {"weight_packed": ("I32",), "weight_shape": ("I64", "I32")}.get(form, FLOATS)
    if dtype not in fitting:
        raise Refused(f"{name} has the dtype {dtype}, which is not one that this tool can handle there")
