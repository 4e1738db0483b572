"""Open a folder with a checkpoint and describe all it holds, without reading more than headers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddock_stack.bake import layout, quantization
from paddock_stack.bake.integers import Dequantised
from paddock_stack.bake.names import FLOAT_FORM, PACKED_FORM, Names, find_names, module_of
from paddock_stack.bake.tensors import Stored, Tensor
from paddock_stack.bake.text_config import Config, number, text_part
from paddock_stack.bake.weights_file import InputFile, read_header
from paddock_stack.refusals import Refused

CONFIG, INDEX, WEIGHTS = "config.json", "model.safetensors.index.json", "model.safetensors"
PROVENANCE = "paddock-bake.json"
WRITTEN_ANEW = (CONFIG, INDEX, PROVENANCE)
OTHER_WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx")


@dataclass(frozen=True)
class Checkpoint:
    """Describe one model: its configuration, tensors in the order of the input, and the files beside them."""

    folder: Path
    config: Config
    names: Names
    tensors: dict[str, Tensor]
    weights: tuple[InputFile, ...]
    others: tuple[Path, ...]

    @property
    def modules(self) -> list[str]:
        """Return the names of all modules that have a tensor, towers included."""
        return list(dict.fromkeys(module_of(name) for name in self.tensors))

    def floats(self, matrix: layout.Matrix) -> Tensor:
        """Return the weights of `matrix` as floats, dequantised where they are packed."""
        stored = self.tensors.get(f"{matrix.module}.{FLOAT_FORM}")
        if stored is not None:
            return stored
        scheme = quantization.scheme_of(self.config, matrix.module, matrix.of_class)
        if scheme is None:
            raise Refused(f"{matrix.module} is packed, but config.json doesn't say how")
        words, scales = (self.tensors[f"{matrix.module}.{form}"] for form in PACKED_FORM[:2])
        return Dequantised(words, scales, matrix.columns, scheme.bits)

    def present(self, kinds: Iterable[layout.Kind]) -> list[layout.Matrix]:
        """Return the matrices of `kinds` that the checkpoint has, in the order of the layers."""
        wanted, here = set(kinds), set(self.modules)
        found = layout.matrices(self.config, self.names)
        return [matrix for matrix in found if matrix.kind in wanted and matrix.module in here]

    @property
    def unnamed_rows(self) -> int | None:
        """Return the rows of a head of which nothing says whose they are; see `layout.unnamed_rows`."""
        return layout.unnamed_rows(self.config, self.names, self.tensors)

    def close(self) -> None:
        """Close the input files."""
        for file in self.weights:
            file.close()


def replaced(tensors: dict[str, Tensor], module: str, new: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return `tensors` with those of `module` replaced by `new` (by last part of the name), in the same place."""
    made: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if module_of(name) != module:
            made[name] = tensor
        elif not any(f"{module}.{form}" in made for form in new):
            made |= {f"{module}.{form}": part for form, part in new.items()}
    return made


def open_checkpoint(folder: Path, *, may_be_cut: bool = False) -> Checkpoint:
    """Return what lies in `folder`; raise `Refused` where it isn't a whole Gemma 4 that fits its configuration.

    `may_be_cut` admits a head with fewer rows than tokens of which the configuration doesn't say whose they are.
    """
    config = read_json(folder / CONFIG)
    text_part(config)
    files: list[InputFile] = []
    try:
        for path in _weight_paths(folder):
            files.append(InputFile(path))
        return _described(folder, config, files, may_be_cut=may_be_cut)
    except BaseException:
        for file in files:
            file.close()
        raise


def _described(folder: Path, config: Config, files: list[InputFile], *, may_be_cut: bool) -> Checkpoint:
    tensors: dict[str, Tensor] = {}
    for file in files:
        for name, entry in read_header(file).items():
            if name in tensors:
                raise Refused(f"{file.path} holds {name} a second time")
            tensors[name] = Stored(file, entry.offset, entry.dtype, entry.shape)
    _check_index(folder, tensors)
    made = Checkpoint(folder, config, find_names(tensors), tensors, tuple(files), tuple(_others(folder)))
    if not is_drafter(config):
        _check(made, may_be_cut=may_be_cut)
    return made


def _check(made: Checkpoint, *, may_be_cut: bool) -> None:
    rows = made.unnamed_rows
    if rows is not None and not may_be_cut:
        raise Refused(
            f"the head has {rows} rows for {number(text_part(made.config), 'vocab_size')} tokens, and nothing says "
            "whose; let prune-head --of come first"
        )
    layout.check(made.config, made.names, made.tensors, rows)


def is_drafter(config: Config) -> bool:
    """Return whether `config` is that of an assistant, whose layers have no keys and values of their own."""
    return config.get("model_type") == "gemma4_assistant"


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in the file at `path`; raise `Refused` where there is none."""
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError) as fault:
        raise Refused(f"{path} can't be read: {fault}") from fault
    return quantization.dict_of(held)


def _weight_paths(folder: Path) -> list[Path]:
    if (folder / INDEX).exists():
        mapped = read_json(folder / INDEX).get("weight_map")
        names = sorted(set(quantization.dict_of(mapped).values()))
        if not names or any(Path(name).name != name for name in names):
            raise Refused(f"{folder / INDEX} names no weights in its own folder")
        return [folder / name for name in names]
    if not (folder / WEIGHTS).exists():
        raise Refused(f"{folder} has neither {WEIGHTS} nor {INDEX}")
    return [folder / WEIGHTS]


def _check_index(folder: Path, tensors: dict[str, Tensor]) -> None:
    if not (folder / INDEX).exists():
        return
    for name, file in read_json(folder / INDEX)["weight_map"].items():
        held = tensors.get(name)
        if not isinstance(held, Stored) or held.file.path.name != file:
            raise Refused(f"{folder / INDEX} promises {name} in {file}, which doesn't hold it")


def _others(folder: Path) -> list[Path]:
    files = (path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith("."))
    return [path for path in files if path.name not in WRITTEN_ANEW and path.suffix not in OTHER_WEIGHTS]
