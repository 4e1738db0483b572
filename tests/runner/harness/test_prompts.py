"""Prompt files: the three forms load as they are, and what is broken is named."""

import json
from pathlib import Path
from typing import Any

import pytest

from runner.harness.faults import BadInput
from runner.harness.prompts import read_prompts, read_references

PUBLIC = Path(__file__).resolve().parents[3] / "prompts" / "public.jsonl"


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_our_jsonl_loads(tmp_path: Path) -> None:
    path = lines(tmp_path / "p", {"id": "a", "category": "maths", "language": "de", "text": "Was\u2028nun?"})
    (prompt,) = read_prompts(path)
    assert (prompt.id, prompt.category, prompt.language, prompt.text) == ("a", "maths", "de", "Was\u2028nun?")


def test_prompt_written_as_json_reads_back_the_same(tmp_path: Path) -> None:
    path = lines(tmp_path / "p", {"id": "a", "text": "Zwölf\nZeilen\u2028"}, {"id": "b", "context_token_ids": [4, 5]})
    prompts = read_prompts(path)
    path.write_text("".join(prompt.to_json() + "\n" for prompt in prompts))
    assert read_prompts(path) == prompts


def test_sharegpt_json_loads_its_first_human_turn(tmp_path: Path) -> None:
    turns = [{"from": "system", "value": "s"}, {"from": "human", "value": "q"}, {"from": "human", "value": "later"}]
    (tmp_path / "p").write_text(json.dumps([{"id": "a", "conversations": turns}], indent=1))
    (prompt,) = read_prompts(tmp_path / "p")
    assert (prompt.id, prompt.text) == ("a", "q")


@pytest.mark.parametrize("key", ["context_token_ids", "prompt_token_ids"])
def test_token_id_jsonl_loads_as_prompts_and_as_references(tmp_path: Path, key: str) -> None:
    path = lines(tmp_path / "p", {"id": "a", key: [2, 3], "target_token_ids": [4, 5], "target_nll": [0.5, 1]})
    assert read_prompts(path)[0].token_ids == (2, 3)
    (reference,) = read_references(path)
    assert (reference.prompt_token_ids, reference.target_token_ids) == ((2, 3), (4, 5))
    assert reference.target_nll == (0.5, 1.0)


@pytest.mark.parametrize(
    "record",
    [
        {"text": "no id"},
        {"id": True, "text": "x"},
        {"id": "a"},
        {"id": "a", "text": "  "},
        {"id": "a", "text": 3},
        {"id": "a", "conversations": []},
        {"id": "a", "conversations": [{"from": "gpt", "value": "x"}]},
        {"id": "a", "context_token_ids": []},
        {"id": "a", "context_token_ids": [1, -2]},
        {"id": "a", "context_token_ids": [1, True]},
        ["a"],
    ],
)
def test_broken_prompt_is_refused(tmp_path: Path, record: Any) -> None:
    with pytest.raises(BadInput):
        read_prompts(lines(tmp_path / "p", record))


@pytest.mark.parametrize(
    "change",
    [{"target_token_ids": []}, {"target_token_ids": None}, {"target_nll": [1.0]}, {"target_nll": "x"}]
    + [{"target_nll": [0.5, wrong]} for wrong in ("x", None, True, -0.1, 1e9)],
)
def test_broken_reference_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    record = {"id": "a", "prompt_token_ids": [1], "target_token_ids": [2, 3]} | change
    with pytest.raises(BadInput):
        read_references(lines(tmp_path / "p", record))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}'])
def test_file_that_is_empty_broken_or_repeats_an_id_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p").write_text(text)
    with pytest.raises(BadInput):
        read_prompts(tmp_path / "p")


def test_public_set_holds_32_prompts_in_many_languages_from_a_sentence_to_pages() -> None:
    prompts = read_prompts(PUBLIC)
    lengths = [len(prompt.text or "") for prompt in prompts]
    assert len(prompts) == 32
    assert {"de", "fr", "es", "ja", "zh", "hi", "ar", "pt", "en"} <= {prompt.language for prompt in prompts}
    assert {"reasoning", "maths", "code", "summary", "translation"} <= {prompt.category for prompt in prompts}
    assert min(lengths) < 120
    assert max(lengths) > 4000


def test_public_prompts_share_no_long_beginning() -> None:
    beginnings = {(prompt.text or "")[:64] for prompt in read_prompts(PUBLIC)}
    assert len(beginnings) == 32
