"""Prompt sets: our JSONL, the public harness's ShareGPT JSON and its token-id JSONL, each as it is.

{"id": "pub-001", "category": "maths", "language": "en", "text": "…"}
[{"id": "a", "conversations": [{"from": "human", "value": "…"}, …]}]
{"id": "a", "context_token_ids": [2, 105], "target_token_ids": [7, 9]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.harness.faults import BadInput

_MOST_NATS = 100.0  # far above -log of the rarest token; a mean of such numbers can still be raised to e


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """One prompt: a text for the chat template, or token ids that go to the server as they are."""

    id: str
    category: str = ""
    language: str = ""
    text: str | None = None
    token_ids: tuple[int, ...] | None = None

    def to_json(self) -> str:
        """Return the prompt as one line of our JSONL, without its end of line."""
        named = {"id": self.id, "category": self.category, "language": self.language}
        body = {"context_token_ids": self.token_ids} if self.text is None else {"text": self.text}
        return json.dumps({**named, **body}, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A record to score: a context and the tokens that follow it; `target_nll` is the reference model's, in nats."""

    id: str
    prompt_token_ids: tuple[int, ...]
    target_token_ids: tuple[int, ...]
    target_nll: tuple[float, ...] | None = None


def read_prompts(path: Path) -> list[Prompt]:
    """Return the prompts of the file in its order; ids are unique, or `BadInput`."""
    prompts = [_prompt(record, f"{path.name}, record {number}") for number, record in enumerate(_records(path), 1)]
    _check_ids(path, [prompt.id for prompt in prompts])
    return prompts


def read_references(path: Path) -> list[Reference]:
    """Return the reference records of the file in its order; ids are unique, or `BadInput`."""
    found = [_reference(record, f"{path.name}, record {number}") for number, record in enumerate(_records(path), 1)]
    _check_ids(path, [reference.id for reference in found])
    return found


def _records(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON array, or of one JSON object per line."""
    try:
        text = path.read_text(encoding="utf-8")
        lines = (line for line in text.split("\n") if line.strip())
        records = json.loads(text) if text.lstrip().startswith("[") else [json.loads(line) for line in lines]
    except (OSError, ValueError) as fault:
        raise BadInput(f"{path} cannot be read as JSON or JSONL: {fault}") from None
    if not records or not all(isinstance(record, dict) for record in records):
        raise BadInput(f"{path} must hold at least one record, and each must be a JSON object")
    return list(records)


def _prompt(record: dict[str, Any], where: str) -> Prompt:
    if "conversations" in record:
        return Prompt(id=_id(record, where), text=_first_human_turn(record["conversations"], where))
    if "text" not in record:
        return Prompt(id=_id(record, where), token_ids=_context(record, where))
    if not isinstance(record["text"], str) or not record["text"].strip():
        raise BadInput(f"{where}: text must be a text that is not empty")
    category, language = str(record.get("category", "")), str(record.get("language", ""))
    return Prompt(id=_id(record, where), category=category, language=language, text=record["text"])


def _first_human_turn(turns: object, where: str) -> str:
    if isinstance(turns, list):
        for turn in turns:
            if isinstance(turn, dict) and turn.get("from") in ("human", "user") and isinstance(turn.get("value"), str):
                return str(turn["value"])
    raise BadInput(f"{where}: conversations hold no turn from human")


def _reference(record: dict[str, Any], where: str) -> Reference:
    target = _ids(record, "target_token_ids", where)
    nll = record.get("target_nll")
    if nll is not None and not (isinstance(nll, list) and len(nll) == len(target) and all(map(_is_nll, nll))):
        raise BadInput(f"{where}: target_nll must hold one number of nats, 0 or more, per target token")
    return Reference(
        id=_id(record, where),
        prompt_token_ids=_context(record, where),
        target_token_ids=target,
        target_nll=None if nll is None else tuple(float(value) for value in nll),
    )


def _is_nll(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _MOST_NATS


def _context(record: dict[str, Any], where: str) -> tuple[int, ...]:
    return _ids(record, "prompt_token_ids" if "prompt_token_ids" in record else "context_token_ids", where)


def _ids(record: dict[str, Any], key: str, where: str) -> tuple[int, ...]:
    value = record.get(key)
    if not (isinstance(value, list) and value and all(type(item) is int and item >= 0 for item in value)):
        raise BadInput(f"{where}: {key} must be a list of token ids that is not empty")
    return tuple(value)


def _id(record: dict[str, Any], where: str) -> str:
    value = record.get("id")
    if not isinstance(value, str | int) or isinstance(value, bool) or value == "":
        raise BadInput(f"{where}: id must be a text or a number")
    return str(value)


def _check_ids(path: Path, ids: list[str]) -> None:
    if len(set(ids)) != len(ids):
        raise BadInput(f"{path} gives the same id to two records")
