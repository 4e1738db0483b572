"""Bake tiny Gemma 4 models in the server environment and print, as JSON, how they compare with transformers.

    .server-env/bin/python in_transformers.py FOLDER

Everything is fp32 and teacher-forced over whole sequences, so differences are those of rounding order alone.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from compressed_tensors.compressors.pack_quantized.helpers import unpack_from_int32
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    Gemma4Config,
    Gemma4ForCausalLM,
    Gemma4ForConditionalGeneration,
    Gemma4TextConfig,
    Gemma4VisionConfig,
)

from paddock_stack.bake.baking import Route, bake
from paddock_stack.bake.integers import Scheme
from paddock_stack.bake.progress import Progress
from paddock_stack.bake.steps.drop_layers import DropLayers
from paddock_stack.bake.steps.heads import UntieHead
from paddock_stack.bake.steps.quantize import Quantize
from paddock_stack.bake.steps.settings import SetWindow
from paddock_stack.bake.steps.step import Step

DROPPED = (1, 9)
KINDS = (["sliding_attention"] * 5 + ["full_attention"]) * 2


def text_config(**changes: Any) -> Gemma4TextConfig:
    sizes = {
        **{"vocab_size": 512, "vocab_size_per_layer_input": 512, "hidden_size": 128, "intermediate_size": 256},
        **{"hidden_size_per_layer_input": 32, "num_hidden_layers": 12, "layer_types": list(KINDS)},
        **{"num_kv_shared_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2},
        **{"head_dim": 32, "global_head_dim": 64, "sliding_window": 16, "max_position_embeddings": 512},
        **{"final_logit_softcapping": 30.0, "tie_word_embeddings": True, "initializer_range": 0.08},
    }
    return Gemma4TextConfig(**(sizes | changes))


def prompts() -> torch.Tensor:
    return torch.randint(16, 512, (3, 48), generator=torch.Generator().manual_seed(1))


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.eval()(input_ids=prompts(), use_cache=False).logits


def load(folder: Path, kind: Any = AutoModelForCausalLM, **options: Any) -> Any:
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", **options)


def skipping(model: Any, layers: tuple[int, ...]) -> Any:
    """Make the layers of `model` let their input through."""
    decoder = model.get_decoder()
    for index in layers:
        getattr(decoder, "language_model", decoder).layers[index].forward = _let_through
    return model


def _let_through(hidden: torch.Tensor, *_rest: Any, **_more: Any) -> torch.Tensor:
    return hidden


def baked(source: Path, name: str, *steps: Step, shard_bytes: int = 10**9) -> Path:
    out = source.parent / name
    bake(steps, Route(source, out), shard_bytes=shard_bytes, make_progress=Progress)
    return out


def compare(one: torch.Tensor, other: torch.Tensor) -> dict[str, Any]:
    """Return the largest difference, and whether the best token is the same everywhere."""
    same = bool((one.argmax(-1) == other.argmax(-1)).all())
    return {"difference": float((one - other).abs().max()), "same_tokens": same, "spread": float(one.std())}


def older_form(source: Path) -> Path:
    """Return a copy of the model in `source` whose head sizes are written as before transformers 5.16."""
    target = source.parent / "older"
    target.mkdir()
    config = json.loads((source / "config.json").read_text())
    del config["per_layer_config"]
    (target / "config.json").write_text(json.dumps(config | {"global_head_dim": 64}))
    (target / "model.safetensors").write_bytes((source / "model.safetensors").read_bytes())
    return target


def multimodal(folder: Path) -> Path:
    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16}
    vision = Gemma4VisionConfig(**sizes, num_attention_heads=2, num_key_value_heads=2)
    config = Gemma4Config(text_config=text_config().to_dict(), vision_config=vision.to_dict(), image_token_id=11)
    Gemma4ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def dequantised(packed: Path, source: Path) -> Path:
    """Return a copy of `source` with the weights that compressed-tensors itself reads from `packed`."""
    target = packed.parent / "dequantised"
    target.mkdir()
    weights, made = load_file(packed / "model.safetensors"), {}
    for name, tensor in weights.items():
        stem, _, form = name.rpartition(".")
        if form == "weight_packed":
            shape = torch.Size(weights[f"{stem}.weight_shape"].tolist())
            values = unpack_from_int32(tensor, 4, shape).float().unflatten(1, (-1, 32))
            made[f"{stem}.weight"] = (values * weights[f"{stem}.weight_scale"][..., None]).flatten(1)
        elif form not in ("weight_scale", "weight_shape"):
            made[name] = tensor
    save_file(made, target / "model.safetensors", metadata={"format": "pt"})
    (target / "config.json").write_bytes((source / "config.json").read_bytes())
    return target


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    work = Path(sys.argv[1])
    source = work / "source"
    Gemma4ForCausalLM(text_config()).save_pretrained(source)
    whole = logits(load(source))
    skipped = logits(skipping(load(source), DROPPED))
    dropped = baked(source, "dropped", DropLayers(DROPPED))
    found = {"skip": compare(skipped, logits(load(dropped))), "skip_matters": compare(whole, skipped)}
    again = baked(source, "sharded", DropLayers(DROPPED), shard_bytes=300_000)
    found["sharded"] = compare(skipped, logits(load(again)))
    found["older"] = compare(skipped, logits(load(baked(older_form(source), "older-dropped", DropLayers(DROPPED)))))
    untied = baked(source, "untied", UntieHead(bits="none"))
    found["untied"] = compare(whole, logits(load(untied)))
    window = baked(source, "window", SetWindow(8, without_drafter=True))
    found["window"] = compare(logits(load(source, config=text_config(sliding_window=8))), logits(load(window)))
    found["window_matters"] = compare(whole, logits(load(window)))
    images = multimodal(work / "images")
    kind = Gemma4ForConditionalGeneration
    images_dropped = load(baked(images, "images-dropped", DropLayers(DROPPED)), kind)
    found["multimodal"] = compare(logits(skipping(load(images, kind), DROPPED)), logits(images_dropped))
    packed = baked(source, "packed", Quantize(bits=4, group_size=Scheme(4, 32).group_size))
    reference = logits(load(dequantised(packed, source)))
    found["packed"] = compare(reference, logits(load(packed)))
    found["packed_matters"] = compare(whole, reference)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
