"""Make a checkpoint with the shapes of gemma-4-E4B and pseudo-random content, the same bytes on every run.

    .venv/bin/python bench/e4b_checkpoint.py FOLDER [--scale 0.1]

At scale 1 it is 9.2 GB: 42 layers in int4 (compressed-tensors, groups of 32), embeddings, per-layer table and norms in
bfloat16, no towers, no tokenizer. A smaller scale has fewer words and a narrower MLP, so that the shares stay alike;
layers, hidden size and attention are E4B's own at any scale (0.8 GB at 0.05). No block of bytes comes twice, so
deduplication finds nothing within one checkpoint; floats and scales are finite, so every step of a bake accepts them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, GLOBAL_DIM, PER_LAYER, LAYERS, SHARED = 2560, 8, 2, 256, 512, 256, 42, 18
GROUP = 32
BLOCK = 2**22
NORMS = ("input", "post_attention", "pre_feedforward", "post_feedforward")
KINDS = ["full_attention" if index % 6 == 5 else "sliding_attention" for index in range(LAYERS)]
ITEM_BYTES = {"BF16": 2, "I32": 4, "I64": 8}
Shapes = dict[str, tuple[str, tuple[int, ...]]]


def make_checkpoint(folder: Path, scale: float = 1.0) -> int:
    """Write the checkpoint into the new folder `folder` and return the size of its weights file in bytes."""
    folder.mkdir(parents=True)
    vocab, ffn = max(1024, round(262144 * scale)), max(256, round(10240 * scale / 256) * 256)
    (folder / "config.json").write_text(json.dumps(_config(vocab, ffn), indent=2) + "\n")
    path = folder / "model.safetensors"
    with path.open("wb") as file:
        shapes = _shapes(vocab, ffn)
        file.write(_header(shapes))
        for name, (dtype, shape) in shapes.items():
            if dtype == "I64":
                rows, words = shapes[name.replace("_shape", "_packed")][1]
                file.write(rows.to_bytes(8, "little") + (words * 8).to_bytes(8, "little"))
                continue
            for block in _content(name, dtype, shape):
                file.write(block)
    return path.stat().st_size


def _config(vocab: int, ffn: int) -> dict[str, Any]:
    weights = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": GROUP}
    return {
        **{"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "dtype": "bfloat16"},
        **{"vocab_size": vocab, "vocab_size_per_layer_input": vocab, "hidden_size": HIDDEN, "intermediate_size": ffn},
        **{"hidden_size_per_layer_input": PER_LAYER, "num_hidden_layers": LAYERS, "layer_types": KINDS},
        **{"num_kv_shared_layers": SHARED, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS},
        **{"head_dim": HEAD_DIM, "sliding_window": 512, "max_position_embeddings": 131072},
        **{"final_logit_softcapping": 30.0, "tie_word_embeddings": True},
        "per_layer_config": {f"{i:02}": {"head_dim": GLOBAL_DIM} for i in range(LAYERS) if KINDS[i] != KINDS[0]},
        "quantization_config": {
            **{"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed"},
            "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}},
        },
    }


def _shapes(vocab: int, ffn: int) -> Shapes:
    shapes: Shapes = {}
    for index, kind in enumerate(KINDS):
        size, stem = GLOBAL_DIM if kind == "full_attention" else HEAD_DIM, f"model.layers.{index}."
        matrices = {
            **{"self_attn.q_proj": (HEADS * size, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * size)},
            **({f"self_attn.{n}_proj": (KV_HEADS * size, HIDDEN) for n in "kv"} if index < LAYERS - SHARED else {}),
            **{"mlp.gate_proj": (ffn, HIDDEN), "mlp.up_proj": (ffn, HIDDEN), "mlp.down_proj": (HIDDEN, ffn)},
            **{"per_layer_input_gate": (PER_LAYER, HIDDEN), "per_layer_projection": (HIDDEN, PER_LAYER)},
        }
        for name, (rows, columns) in matrices.items():
            shapes |= _packed(stem + name, rows, columns)
        shapes |= {f"{stem}{name}_layernorm.weight": ("BF16", (HIDDEN,)) for name in NORMS}
        shapes[f"{stem}post_per_layer_input_norm.weight"] = "BF16", (HIDDEN,)
        shapes |= {f"{stem}self_attn.{name}_norm.weight": ("BF16", (size,)) for name in "qk"}
        shapes[f"{stem}layer_scalar"] = "BF16", (1,)
    shapes |= _packed("model.per_layer_model_projection", LAYERS * PER_LAYER, HIDDEN)
    shapes["model.per_layer_projection_norm.weight"] = "BF16", (PER_LAYER,)
    shapes["model.norm.weight"] = "BF16", (HIDDEN,)
    shapes["model.embed_tokens.weight"] = "BF16", (vocab, HIDDEN)
    shapes["model.embed_tokens_per_layer.weight"] = "BF16", (vocab, LAYERS * PER_LAYER)
    return dict(sorted(shapes.items(), key=lambda item: -ITEM_BYTES[item[1][0]]))


def _packed(module: str, rows: int, columns: int) -> Shapes:
    return {
        f"{module}.weight_packed": ("I32", (rows, columns // 8)),
        f"{module}.weight_scale": ("BF16", (rows, columns // GROUP)),
        f"{module}.weight_shape": ("I64", (2,)),
    }


def _header(shapes: Shapes) -> bytes:
    header, position = {}, 0
    for name, (dtype, shape) in shapes.items():
        end = position + math.prod(shape) * ITEM_BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _content(name: str, dtype: str, shape: tuple[int, ...]) -> Iterator[bytes]:
    drawn = np.random.Generator(np.random.SFC64(zlib.crc32(name.encode())))
    left = math.prod(shape) * ITEM_BYTES[dtype]
    while left > 0:
        block = drawn.bit_generator.random_raw(BLOCK // 8)
        if dtype == "BF16":  # sign kept but for scales; magnitudes between 2^-7 and 2^-3, all finite
            sign = 0 if name.endswith("_scale") else 0x8000800080008000
            block &= np.uint64(sign | 0x01FF01FF01FF01FF)
            block |= np.uint64(0x3C003C003C003C00)
        yield block.tobytes()[:left]
        left -= BLOCK


def main() -> int:
    """Make the checkpoint that the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description="Make a checkpoint with the shapes of gemma-4-E4B.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is 9.2 GB, 0.05 is 0.8 GB")
    arguments = parser.parse_args()
    print(f"{arguments.folder}: {make_checkpoint(arguments.folder, arguments.scale)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
