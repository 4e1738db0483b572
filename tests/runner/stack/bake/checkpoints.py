"""Make small Gemma 4 checkpoints with numpy alone, and read weights files whole, independently of what is tested."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

NUMPY = {"BF16": "<u2", "F16": "<f2", "F32": "<f4", "I32": "<i4", "I64": "<i8", "U8": "u1"}
HIDDEN, FFN, HEADS, KV_HEADS, HEAD_DIM, GLOBAL_DIM, PER_LAYER, VOCAB = 64, 96, 4, 2, 32, 64, 32, 320
KINDS = (["sliding_attention"] * 2 + ["full_attention"]) * 4
SHARED = 6
NORMS = ("input", "post_attention", "pre_feedforward", "post_feedforward")
Arrays = dict[str, tuple[str, np.ndarray]]


def text_config(**changes: Any) -> dict[str, Any]:
    """Return the configuration of a text model with twelve layers, six of them sharers."""
    count = len(changes.get("layer_types", KINDS))
    made = {
        **{"model_type": "gemma4_text", "vocab_size": VOCAB, "vocab_size_per_layer_input": VOCAB},
        **{"hidden_size": HIDDEN, "intermediate_size": FFN, "hidden_size_per_layer_input": PER_LAYER},
        **{"num_hidden_layers": count, "layer_types": list(KINDS), "num_kv_shared_layers": SHARED},
        **{"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM},
        **{"sliding_window": 64, "tie_word_embeddings": True, "max_position_embeddings": 512},
        **{"bos_token_id": 2, "eos_token_id": [1, 6], "pad_token_id": 0},
    } | changes
    if "global_head_dim" not in made:
        full = [index for index, kind in enumerate(made["layer_types"]) if kind == "full_attention"]
        made["per_layer_config"] = {f"{index:02}": {"head_dim": GLOBAL_DIM} for index in full}
    return made


def arrays(text: dict[str, Any], prefix: str = "model.", dtype: str = "BF16", seed: int = 0) -> Arrays:
    """Return random weights for `text`, sharers' unread keys and values included, as published ones carry them."""
    numbers = np.random.default_rng(seed)
    width = text["num_hidden_layers"] * PER_LAYER

    def made(*shape: int) -> tuple[str, np.ndarray]:
        values = numbers.standard_normal(shape).astype(np.float32)
        return dtype, (values.view(np.uint32) >> 16).astype("<u2") if dtype == "BF16" else values.astype(NUMPY[dtype])

    weights = {
        f"{prefix}embed_tokens.weight": made(VOCAB, HIDDEN),
        f"{prefix}embed_tokens_per_layer.weight": made(VOCAB, width),
        f"{prefix}per_layer_model_projection.weight": made(width, HIDDEN),
        f"{prefix}per_layer_projection_norm.weight": made(PER_LAYER),
        f"{prefix}norm.weight": made(HIDDEN),
    }
    for index, kind in enumerate(text["layer_types"]):
        size = GLOBAL_DIM if kind == "full_attention" else HEAD_DIM
        shapes = {
            **{"self_attn.q_proj": (HEADS * size, HIDDEN), "self_attn.o_proj": (HIDDEN, HEADS * size)},
            **{f"self_attn.{name}_proj": (KV_HEADS * size, HIDDEN) for name in "kv"},
            **{"self_attn.q_norm": (size,), "self_attn.k_norm": (size,), "post_per_layer_input_norm": (HIDDEN,)},
            **{f"{name}_layernorm": (HIDDEN,) for name in NORMS},
            **{"mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN), "mlp.down_proj": (HIDDEN, FFN)},
            **{"per_layer_input_gate": (PER_LAYER, HIDDEN), "per_layer_projection": (HIDDEN, PER_LAYER)},
        }
        weights |= {f"{prefix}layers.{index}.{name}.weight": made(*shape) for name, shape in shapes.items()}
        weights[f"{prefix}layers.{index}.layer_scalar"] = made(1)
    return weights


def towers(dtype: str = "BF16") -> Arrays:
    """Return some weights that belong to no language model, though they are called alike."""
    values = np.arange(64 * 64).reshape(64, 64).astype(NUMPY[dtype])
    return {
        "model.vision_tower.encoder.layers.3.self_attn.q_proj.weight": (dtype, values),
        "model.embed_vision.embedding_projection.weight": (dtype, values[:32]),
    }


def write_file(path: Path, weights: Arrays) -> None:
    """Write `weights` as one safetensors file."""
    header, position = {}, 0
    for name, (dtype, values) in weights.items():
        offsets = [position, position + values.nbytes]
        header[name] = {"dtype": dtype, "shape": list(values.shape), "data_offsets": offsets}
        position = offsets[1]
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, values in weights.values():
            file.write(values.tobytes())


def write_checkpoint(folder: Path, config: dict[str, Any], weights: Arrays, files: int = 1) -> Path:
    """Write a checkpoint with its weights in `files` files, and a tokenizer, into a new folder."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    (folder / "chat_template.jinja").write_text("{{ '<|turn>' + role }}{{ 'model\\n' }}")
    names = list(weights)
    if files == 1:
        write_file(folder / "model.safetensors", weights)
        return folder
    places = {name: f"part-{index * files // len(names)}.safetensors" for index, name in enumerate(names)}
    for place in set(places.values()):
        write_file(folder / place, {name: weights[name] for name in names if places[name] == place})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder


def tokenizer() -> dict[str, Any]:
    """Return a tokenizer with eight special tokens, 256 for bytes and merges to be skipped."""
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>", "<|image|>"]
    vocabulary = {name: index for index, name in enumerate(special)}
    vocabulary |= {f"<0x{value:02X}>": 8 + value for value in range(256)}
    vocabulary |= {"model": 300, 'say "[" ]': 301}
    added = [{"id": index, "content": name, "special": True} for index, name in enumerate(special)]
    return {"added_tokens": added, "model": {"type": "BPE", "vocab": vocabulary, "merges": [['"[', "]"], ["m", "o"]]}}


def read_folder(folder: Path) -> Arrays:
    """Return every tensor of the checkpoint in `folder`, whole."""
    found: Arrays = {}
    for path in sorted(folder.glob("*.safetensors")):
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        for name, entry in header.items():
            if name != "__metadata__":
                start, end = entry["data_offsets"]
                data = content[8 + length + start : 8 + length + end]
                found[name] = entry["dtype"], np.frombuffer(data, NUMPY[entry["dtype"]]).reshape(entry["shape"])
    return found


def assert_same(made: Arrays, expected: Arrays) -> None:
    """Fail unless both hold the same tensors, bit for bit."""
    assert set(made) == set(expected)
    for name, (dtype, values) in expected.items():
        assert (made[name][0], made[name][1].shape) == (dtype, values.shape), name
        assert made[name][1].tobytes() == values.tobytes(), name
