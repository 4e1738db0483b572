"""Tell what a checkpoint is made of."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from paddock_stack import keepset
from paddock_stack.bake import layout, quantization
from paddock_stack.bake.checkpoint import Checkpoint, is_drafter, open_checkpoint
from paddock_stack.bake.names import layer_of, module_of
from paddock_stack.bake.text_config import first_shared, kinds, number, sources, text_part


def inspect(folder: Path) -> dict[str, Any]:
    """Return the facts about the checkpoint in `folder` that decide what can be baked from it."""
    checkpoint = open_checkpoint(folder, may_be_cut=True)
    try:
        text = text_part(checkpoint.config)
        facts: dict[str, Any] = {
            "weights_bytes": sum(tensor.nbytes for tensor in checkpoint.tensors.values()),
            "tensors": len(checkpoint.tensors),
            "dtypes": dict(Counter(tensor.dtype for tensor in checkpoint.tensors.values())),
            "layers": number(text, "num_hidden_layers"),
            "full_attention_layers": [index for index, kind in enumerate(kinds(text)) if kind.startswith("full")],
            "sliding_window": text.get("sliding_window"),
        }
        return facts | ({"drafter": True} if is_drafter(checkpoint.config) else _of_model(checkpoint))
    finally:
        checkpoint.close()


def _of_model(checkpoint: Checkpoint) -> dict[str, Any]:
    text = text_part(checkpoint.config)
    return {
        "first_shared_layer": first_shared(text),
        "sources": sources(text),
        "head": _head(checkpoint),
        "quantised": _schemes(checkpoint),
        "bytes": _bytes_by_part(checkpoint),
    }


def _head(checkpoint: Checkpoint) -> str:
    if layout.is_tied(checkpoint.config):
        return "tied"
    if checkpoint.unnamed_rows is not None:
        return f"{checkpoint.unnamed_rows} rows, of which nothing says whose; prune-head --of does"
    text = text_part(checkpoint.config)
    kept = keepset.from_config(text)
    return f"{len(kept.ids) if kept else text['vocab_size']} rows"


def _schemes(checkpoint: Checkpoint) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for matrix in checkpoint.present(layout.Kind):
        scheme = quantization.scheme_of(checkpoint.config, matrix.module, matrix.of_class)
        said = f"int{scheme.bits} g{scheme.group_size}" if scheme else "floats"
        found.setdefault(matrix.kind, set()).add(said)
    return {kind: ", ".join(sorted(said)) for kind, said in found.items()}


def _bytes_by_part(checkpoint: Checkpoint) -> dict[str, int]:
    kind_of = {matrix.module: str(matrix.kind) for matrix in checkpoint.present(layout.Kind)}
    sizes: Counter[str] = Counter()
    for name, tensor in checkpoint.tensors.items():
        rest = "norms" if layer_of(name) is not None or name.startswith(f"{checkpoint.names.prefix}norm") else "other"
        sizes[kind_of.get(module_of(name), rest)] += tensor.nbytes
    return dict(sizes.most_common())
