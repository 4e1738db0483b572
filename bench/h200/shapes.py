"""Write the folders of weightless checkpoints that the H200 is measured with: config.json and a tokenizer each.

`e4b` has the shapes of google/gemma-4-E4B-it's language model, less rows of its per-layer embedding. At batch 1 an H200
is bound by launches there, so `wide` stands in for the A10G: widened until a step of bf16 reads as long on an H200 as
E4B's does on an A10G. `tiny` is for trying the scripts on a CPU. Each comes in bf16, in int4 with groups of 32 (as
the published W4A16 checkpoint, with an int4 head) and with groups of 128, and as the bakes of those profiles leave it
that serve something else; `drafter` is the MTP assistant.

    python shapes.py FOLDER
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

from paddock_stack import keepset

SLIDING, FULL = "sliding_attention", "full_attention"
VOCABULARY, KEPT = 262_144, 12_288
WINDOW, TOP_K = 192, 48  # of the public race's fastest

SHAPES: dict[str, dict[str, Any]] = {
    "e4b": {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "hidden_size_per_layer_input": 256,
    },
    "wide": {
        "hidden_size": 6784,
        "intermediate_size": 27136,
        "num_attention_heads": 20,
        "num_key_value_heads": 5,
        "hidden_size_per_layer_input": 640,
    },
    "tiny": {
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_size_per_layer_input": 32,
        "head_dim": 32,
        "global_head_dim": 64,
        "sliding_window": 64,
        "vocab_size": 4096,
        "vocab_size_per_layer_input": 4096,
    },
}


def text(shape: str, layers: int = 42) -> dict[str, Any]:
    """Return the configuration of a language model; 37 layers are those that the public pruned model kept."""
    types = ([SLIDING] * 5 + [FULL]) * 7
    kept = [index for index in range(42) if layers == 42 or index not in (2, 3, 4, 36, 37)]
    return {
        "architectures": ["Gemma4ForCausalLM"],
        "model_type": "gemma4_text",
        "dtype": "bfloat16",
        "attention_bias": False,
        "attention_k_eq_v": False,
        "bos_token_id": 2,
        "eos_token_id": 1,
        "pad_token_id": 0,
        "enable_moe_block": False,
        "final_logit_softcapping": 30.0,
        "head_dim": 256,
        "global_head_dim": 512,
        "hidden_activation": "gelu_pytorch_tanh",
        "layer_types": [types[index] for index in kept],
        "num_hidden_layers": len(kept),
        "num_kv_shared_layers": sum(index >= 24 for index in kept),
        "max_position_embeddings": 131_072,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {
            FULL: {"partial_rotary_factor": 0.25, "rope_theta": 1e6, "rope_type": "proportional"},
            SLIDING: {"rope_theta": 1e4, "rope_type": "default"},
        },
        "sliding_window": 512,
        "tie_word_embeddings": True,
        "use_double_wide_mlp": False,
        "vocab_size": VOCABULARY,
        "vocab_size_per_layer_input": 16_384,  # E4B has 262,144: a step reads one row either way
        **SHAPES[shape],
    }


def int4(config: dict[str, Any], group_size: int, head: int | None = None) -> dict[str, Any]:
    """Return `config` with every product in int4 with one scale per `group_size` columns.

    `head` is that of the untied head: the same for None, one scale a row for -1; 0 leaves it in bf16 and tied.
    """
    targets = ["Linear", *(["re:.*lm_head$"] if head is None else [])]
    groups = {"group_0": _group(group_size, targets)}
    if head == -1:
        groups["group_1"] = _group(-1, ["re:.*lm_head$"])
    quantization = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "quantization_status": "compressed",
        "config_groups": groups,
        "ignore": ["lm_head"] if head == 0 else [],
    }
    return {**config, "tie_word_embeddings": head == 0, "quantization_config": quantization}


def _group(group_size: int, targets: list[str]) -> dict[str, Any]:
    size = {"strategy": "channel"} if group_size == -1 else {"strategy": "group", "group_size": group_size}
    weights = {"num_bits": 4, "type": "int", "symmetric": True, **size}
    return {"format": "pack-quantized", "weights": weights, "targets": targets}


def pruned(config: dict[str, Any]) -> dict[str, Any]:
    """Return `config` with a head that keeps 12,288 rows, or a quarter of a small vocabulary."""
    whole = config["vocab_size"]
    ids = sorted(random.Random(0).sample(range(whole), min(KEPT, whole // 4)))
    record = {"sha256": keepset.digest(ids), "full_vocab": whole}
    return {**config, keepset.IDS_KEY: ids, keepset.RECORD_KEY: record}


def drafter(target: dict[str, Any], top_k: int = 32) -> dict[str, Any]:
    """Return the configuration of an MTP assistant of `target`: four layers of width 256 over its key-value cache."""
    config = {
        **target,
        "hidden_size": 256,
        "intermediate_size": 2048,
        "num_attention_heads": target["num_key_value_heads"] * 2,
        "num_hidden_layers": 4,
        "num_kv_shared_layers": 4,
        "layer_types": [SLIDING] * 3 + [FULL],
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "final_logit_softcapping": None,
    }
    del config["architectures"]
    return {
        "architectures": ["Gemma4AssistantForCausalLM"],
        "model_type": "gemma4_assistant",
        "dtype": "bfloat16",
        "text_config": config,
        "backbone_hidden_size": target["hidden_size"],
        "use_ordered_embeddings": target["head_dim"] == 256,  # a CPU has no centroid drafter
        "num_centroids": 2048,
        "centroid_intermediate_top_k": top_k,
        "tie_word_embeddings": True,
        "vocab_size": target["vocab_size"],
    }


def write_all(folder: Path) -> None:
    """Write every checkpoint's folder below `folder`."""
    for shape in SHAPES:
        for layers in (42, 37):
            plain = text(shape, layers)
            _write(folder / f"{shape}-{layers}L", plain)
            for group_size in (32, 128) if shape != "tiny" else (32,):
                _write(folder / f"{shape}-{layers}L-int4-g{group_size}", int4(plain, group_size))
        _write(folder / f"{shape}-drafter", drafter(text(shape)))
        _write_bakes(folder, shape)


def _write_bakes(folder: Path, shape: str) -> None:
    """Write what profiles serve that neither is plain nor has all in int4 alike, under their names."""
    narrow = {"sliding_window": WINDOW if shape != "tiny" else 48}
    wide_groups = 128 if shape != "tiny" else 32
    _write(folder / f"{shape}-int4-mtp-2d", int4(text(shape), 32, head=0))
    _write(folder / f"{shape}-int4-headprune", pruned(int4(text(shape), 32)))
    _write(folder / f"{shape}-pruned-osoi5-repro", pruned(int4(text(shape, 37) | narrow, wide_groups, head=-1)))
    _write(folder / f"{shape}-drafter-pruned-osoi5-repro", drafter(text(shape) | narrow, TOP_K))


def _write(folder: Path, config: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    (folder / "generation_config.json").write_text(
        json.dumps({"bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0})
    )


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
