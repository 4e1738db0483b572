"""A head that kept some rows answers, on real vLLM, like the whole one with every other token forbidden."""

import json
from pathlib import Path
from random import Random

import pytest

from tests.runner.stack.bake.checkpoints import read_folder, write_file
from tests.runner.stack.serving.asked import LONG, SHORT, VOCABULARY, bake, reference, served, with_config
from tests.runner.stack.serving.zygote import TaskFailed, Zygote

pytestmark = pytest.mark.vllm

# Two of three ids, and all those of the prompts: what is asked about them must have a probability.
KEEP = sorted({token for token in range(VOCABULARY) if token % 3} | set(SHORT) | set(LONG[:50]))
EVERYTHING = "special,bytes,template,multimodal"
# The rows that somebody else left, in an order of their own.
LEFT = Random(5).sample(range(VOCABULARY), 1500)
FEWER = sorted(token for token in LEFT if token % 4)


@pytest.fixture(scope="module")
def pruned(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints `text` and `multimodal` with pruned heads."""
    folder = tmp_path_factory.mktemp("pruned")
    keep = folder / "keep.json"
    keep.write_text(json.dumps(KEEP))
    for name in ("text", "multimodal"):
        pruning = ("--then", "prune-head", "--keep", keep, "--allow", EVERYTHING)
        bake("untie-head", checkpoints / name, folder / name, "--bits", "none", *pruning)
    return folder


def test_text_is_that_of_the_whole_head_under_the_same_mask(zygote: Zygote, checkpoints: Path, pruned: Path) -> None:
    answer = served(zygote, pruned / "text", prompt_logprobs=True)
    expected = reference(zygote, checkpoints / "text", keep=KEEP)
    assert answer["classes"] == ["PrunedGemma4", "PrunedGemma4"]
    assert answer["tokens"] == expected["tokens"]
    assert expected["tokens"] != reference(zygote, checkpoints / "text")["tokens"]  # or the mask would prove nothing


def test_prompt_logprobs_are_finite_for_kept_ids_alone(zygote: Zygote, checkpoints: Path, pruned: Path) -> None:
    answer = served(zygote, pruned / "text", prompt_logprobs=True)["prompt_logprobs"]
    expected = reference(zygote, checkpoints / "text", keep=KEEP)["logprobs"]
    for prompt, told, meant in zip((SHORT, LONG), answer, expected, strict=True):
        assert [value > -1e8 for value in told[1:]] == [token in KEEP for token in prompt[1:]]
        kept = [place for place, token in enumerate(prompt) if place and token in KEEP]
        assert max(abs(told[place] - meant[place]) for place in kept) < 1e-3


@pytest.fixture(scope="module")
def cut_elsewhere(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint `text` with the rows of LEFT alone; its configuration doesn't say so, LEFT.json does."""
    folder = with_config(checkpoints / "text", tmp_path_factory.mktemp("cut") / "cut", tie_word_embeddings=False)
    weights = read_folder(folder)
    dtype, embedding = weights["model.embed_tokens.weight"]
    write_file(folder / "model.safetensors", weights | {"lm_head.weight": (dtype, embedding[LEFT])})
    for name, ids in {"LEFT": LEFT, "FEWER": FEWER}.items():
        (folder / f"{name}.json").write_text(json.dumps(ids))
    return folder


@pytest.mark.parametrize(("name", "keep"), [("LEFT", LEFT), ("FEWER", FEWER)])
def test_head_that_was_cut_elsewhere_is_declared_pruned_further_and_served(
    zygote: Zygote, checkpoints: Path, cut_elsewhere: Path, tmp_path: Path, name: str, keep: list[int]
) -> None:
    options = ("--of", cut_elsewhere / "LEFT.json", "--keep", cut_elsewhere / f"{name}.json", "--allow", EVERYTHING)
    bake("prune-head", cut_elsewhere, tmp_path / "out", *options)
    bake("verify", tmp_path / "out")
    answer = served(zygote, tmp_path / "out")
    assert answer["classes"] == ["PrunedGemma4", "PrunedGemma4"]
    assert answer["tokens"] == reference(zygote, checkpoints / "text", keep=keep)["tokens"]
    assert answer["tokens"] != reference(zygote, checkpoints / "text")["tokens"]


def test_multimodal_model_builds_its_language_model_with_the_pruned_head(
    zygote: Zygote, checkpoints: Path, pruned: Path
) -> None:
    answer = served(zygote, pruned / "multimodal")
    assert answer["classes"] == ["Gemma4ForConditionalGeneration", "PrunedGemma4"]
    assert answer["tokens"] == reference(zygote, checkpoints / "multimodal", keep=KEEP, multimodal=True)["tokens"]


def test_whole_head_is_left_to_vllm(zygote: Zygote, checkpoints: Path) -> None:
    expected = reference(zygote, checkpoints / "text")["tokens"]
    assert served(zygote, checkpoints / "text")["tokens"] == expected
    assert served(zygote, checkpoints / "text", stock=True)["tokens"] == expected


def test_keep_set_that_is_not_the_one_of_its_digest_is_refused(zygote: Zygote, pruned: Path, tmp_path: Path) -> None:
    other = with_config(pruned / "text", tmp_path / "other", lm_head_keep_ids=KEEP[:-1])
    with pytest.raises(TaskFailed, match="not the one that its digest names"):
        served(zygote, other)
