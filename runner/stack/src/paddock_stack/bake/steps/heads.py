"""Give the head weights of its own, and cut it to the tokens of a keep-set."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paddock_stack import VERSION, keepset
from paddock_stack.bake import layout, quantization
from paddock_stack.bake.checkpoint import Checkpoint, replaced
from paddock_stack.bake.integers import Scheme
from paddock_stack.bake.names import FLOAT_FORM, module_of
from paddock_stack.bake.needed_tokens import lacking, needed_tokens
from paddock_stack.bake.steps.quantize import quantise_all
from paddock_stack.bake.steps.step import Models, Step, Words
from paddock_stack.bake.tensors import Made, Rows, Tensor, ranges_of
from paddock_stack.bake.text_config import number, text_part
from paddock_stack.keepset import KeepSet
from paddock_stack.refusals import Refused


@dataclass(frozen=True)
class UntieHead(Step):
    """Copy the token embedding into a head of its own, quantised unless `bits` is none."""

    NAME = "untie-head"
    SUMMARY = "give the head weights of its own, quantised, beside the embedding"

    bits: str = field(default="4", metadata={"help": "4 (default), 8, or none to leave it in floats"})
    group_size: int = field(default=32, metadata={"help": "columns to a scale: 32 (default), 128 or -1 for a row"})

    def apply(self, models: Models) -> Models:
        """Return the models with an untied head."""
        before = models.the_target(self.NAME)
        if not layout.is_tied(before.config):
            raise Refused("the head has weights of its own already; quantize --modules head packs them")
        if self.bits not in ("4", "8", "none"):
            raise Refused(f"untie-head takes 4, 8 or none for bits, not {self.bits}")
        after = _untied(before)
        if self.bits != "none":
            head = after.present([layout.Kind.HEAD])
            after = quantise_all(after, head, Scheme(int(self.bits), self.group_size))
        return dataclasses.replace(models, target=after)


def _untied(before: Checkpoint) -> Checkpoint:
    embedding = next(matrix for matrix in before.present([layout.Kind.EMBEDDING]))
    config = quantization.copied(before.config)
    text_part(config)["tie_word_embeddings"] = config["tie_word_embeddings"] = False
    if quantization.scheme_of(config, before.names.head, "Linear") is not None:
        quantization.ignore(config, layout.PATTERNS[layout.Kind.HEAD])
    tensors = before.tensors | {f"{before.names.head}.{FLOAT_FORM}": before.floats(embedding)}
    layout.check(config, before.names, tensors)
    return dataclasses.replace(before, config=config, tensors=tensors)


@dataclass(frozen=True)
class PruneHead(Step):
    """Keep only those rows of the head whose tokens are in the keep-set file `keep`.

    The set must hold the tokens that a Gemma can't do without, but for the groups named in `allow`. A head that is
    pruned already is pruned further; the new set must lie within its own. Where it was cut elsewhere, so that the
    configuration doesn't say whose rows it has, the file `of` does: row r scores the r-th id there. As `keep` and `of`
    the same file keeps every row.
    """

    NAME = "prune-head"
    SUMMARY = "keep only some tokens' rows of the head; all others become impossible"

    keep: Path = field(metadata={"help": "file with the ids to keep"})
    allow: Words = field(
        default=(), metadata={"help": "groups that may be incomplete: special, bytes, template, multimodal"}
    )
    of: Path | None = field(
        default=None,
        metadata={"help": "file with the ids whose rows the head has, in their order; it was cut elsewhere"},
    )

    @property
    def names_rows(self) -> bool:
        """Return whether `of` was given."""
        return self.of is not None

    def apply(self, models: Models) -> Models:
        """Return the models with a pruned head and the keep-set in the configuration."""
        before = models.the_target(self.NAME)
        if layout.is_tied(before.config):
            raise Refused("the head is tied to the embedding, so it can't be pruned; untie-head comes first")
        text = text_part(before.config)
        ids = keepset.read_ids(self.keep)
        keepset.check_ids(ids, number(text, "vocab_size"))
        kept = KeepSet(tuple(sorted(ids)), number(text, "vocab_size"))
        lacking(kept, needed_tokens(before.folder, before.config), self.allow)
        present = self._present(before, kept.full_vocab)
        return dataclasses.replace(models, target=_pruned(before, present, kept, self.keep.name))

    def _present(self, before: Checkpoint, full_vocab: int) -> Sequence[int]:
        """Return the token of every row that the head has, in the order of the rows."""
        declared = keepset.from_config(text_part(before.config))
        if self.of is None:
            return range(full_vocab) if declared is None else declared.ids
        if declared is not None:
            raise Refused("config.json says already whose rows the head has; prune-head needs no --of there")
        ids = keepset.read_ids(self.of)
        keepset.check_ids(ids, full_vocab, str(self.of))
        rows = before.unnamed_rows or full_vocab
        if len(ids) != rows:
            raise Refused(f"{self.of} names {len(ids)} tokens, but the head has {rows} rows")
        return ids

    def record(self) -> dict[str, Any]:
        """Return name and parameters, the keep-set by its number of ids and digest, `of` by that of its order."""
        ids = tuple(sorted(keepset.read_ids(self.keep)))
        digest = KeepSet(ids, max(ids) + 1).sha256
        said = {"step": self.NAME, "keep": self.keep.name, "keep_sha256": digest, "keep_ids": len(ids),
                "allow": list(self.allow)}  # fmt: skip
        if self.of is None:
            return said
        return said | {"of": self.of.name, "of_sha256": keepset.digest(keepset.read_ids(self.of))}


def _pruned(before: Checkpoint, present: Sequence[int], kept: KeepSet, source: str) -> Checkpoint:
    head, config = before.names.head, quantization.copied(before.config)
    text = text_part(config)
    rows = _row_numbers(present, kept)
    forms = {name.rpartition(".")[2]: part for name, part in before.tensors.items() if module_of(name) == head}
    new: dict[str, Tensor] = {
        form: Rows(part, ranges_of(rows)) for form, part in forms.items() if form != "weight_shape"
    }
    if "weight_shape" in forms:
        new["weight_shape"] = Made((len(rows), number(text, "hidden_size")))
    text[keepset.IDS_KEY] = list(kept.ids)
    text[keepset.RECORD_KEY] = {
        **{"sha256": kept.sha256, "full_vocab": kept.full_vocab},
        **{"builder": f"paddock-stack {VERSION}", "source": source},
    }
    tensors = replaced(before.tensors, head, new)
    layout.check(config, before.names, tensors)
    return dataclasses.replace(before, config=config, tensors=tensors)


def _row_numbers(present: Sequence[int], kept: KeepSet) -> list[int]:
    wanted = set(kept.ids)
    positions = {token: row for row, token in enumerate(present) if token in wanted}
    gone = [token for token in kept.ids if token not in positions]
    if gone:
        raise Refused(f"the head was pruned before and has no row for token {gone[0]}, which the keep-set wants")
    return [positions[token] for token in kept.ids]
