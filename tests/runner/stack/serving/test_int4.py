"""A baked W4A16 checkpoint is, on vLLM's int4 kernel, the model that its dequantised weights make."""

import json
from pathlib import Path
from statistics import mean

import pytest

from tests.runner.stack.serving.asked import LONG, VOCABULARY, bake, reference, served
from tests.runner.stack.serving.zygote import Zygote

pytestmark = pytest.mark.vllm

# Of |difference in log-probability| over a hundred tokens: vLLM's int4 kernel has no fp32 on the CPU, so it multiplies
# in float16 here, while the reference is fp32. Rounding the weights to int4 moves the mean by more than two.
LARGEST, MEAN, MEAN_OF_ROUNDING = 0.5, 0.06, 1.0


def test_logits_are_those_of_the_dequantised_weights(zygote: Zygote, checkpoints: Path, tmp_path: Path) -> None:
    bake("quantize", checkpoints / "text", tmp_path / "int4", "--group-size", 32)
    dequantise = "tests.runner.stack.serving.checkpoints:dequantised"
    zygote.call(dequantise, folder=str(tmp_path / "plain"), source=str(tmp_path / "int4"))
    asked = {"prompts": [LONG], "max_tokens": 1}
    told = served(zygote, tmp_path / "int4", prompt_logprobs=True, options={"dtype": "float16"}, **asked)
    meant = reference(zygote, tmp_path / "plain", **asked)["logprobs"][0]
    whole = reference(zygote, checkpoints / "text", **asked)["logprobs"][0]
    differences = _differences(told["prompt_logprobs"][0], meant)
    assert max(differences) < LARGEST
    assert mean(differences) < MEAN
    assert mean(_differences(whole, meant)) > MEAN_OF_ROUNDING  # so it was the packed weights that were served


def test_pruned_int4_head_is_the_dequantised_one_under_the_same_mask(
    zygote: Zygote, checkpoints: Path, tmp_path: Path
) -> None:
    keep = sorted({*range(0, VOCABULARY, 2), *LONG})
    (tmp_path / "keep.json").write_text(json.dumps(keep))
    bake("untie-head", checkpoints / "text", tmp_path / "int4")
    allowed = ("--allow", "special,bytes,template,multimodal")
    bake("prune-head", tmp_path / "int4", tmp_path / "pruned", "--keep", tmp_path / "keep.json", *allowed)
    dequantise = "tests.runner.stack.serving.checkpoints:dequantised"
    zygote.call(dequantise, folder=str(tmp_path / "plain"), source=str(tmp_path / "int4"))
    asked = {"prompts": [LONG], "max_tokens": 1}
    told = served(zygote, tmp_path / "pruned", prompt_logprobs=True, options={"dtype": "float16"}, **asked)
    meant = reference(zygote, tmp_path / "plain", keep=keep, **asked)["logprobs"][0]
    differences = _differences(told["prompt_logprobs"][0], meant)
    assert max(differences) < LARGEST
    assert mean(differences) < MEAN


def _differences(told: list[float | None], meant: list[float | None]) -> list[float]:
    return [abs(a - b) for a, b in zip(told, meant, strict=True) if a is not None and b is not None]
