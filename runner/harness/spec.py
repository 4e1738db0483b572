"""What to measure, as the runner orders it: one JSON object, read strictly.

    {"base_url": "http://127.0.0.1:8000", "served_model_name": "gemma-4-e4b-it", "tokenizer": "tokenizer/",
     "prompts": "prompts.jsonl", "references": "references.jsonl", "num_prompts": 128, "output_tokens": 512,
     "warmup_requests": 4, "seed": 1, "max_prompt_tokens": 3072, "request_timeout_s": 180, "ppl_cap": 2.42,
     "hardware": "a10g-small", "run_id": "run_…"}

`uds` (the path of a unix socket) may stand in place of `base_url`; `references` and `ppl_cap` may be null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

from runner.harness.faults import BadInput

_TEXTS = ("served_model_name", "tokenizer", "prompts", "hardware", "run_id")
_OPTIONAL_TEXTS = ("base_url", "uds", "references")
_LEAST = {"num_prompts": 1, "output_tokens": 1, "warmup_requests": 0, "max_prompt_tokens": 1, "seed": 0}
_MOST = {"seed": 2**63 - 1}
_MOST_OTHERWISE = 10**9


@dataclass(frozen=True, kw_only=True)
class Spec:
    """One measurement; lengths in tokens, times in seconds. Exactly one of `base_url` and `uds` is set."""

    served_model_name: str
    tokenizer: str
    prompts: str
    num_prompts: int
    output_tokens: int
    warmup_requests: int
    seed: int
    max_prompt_tokens: int
    request_timeout_s: float
    hardware: str
    run_id: str
    base_url: str | None = None
    uds: str | None = None
    references: str | None = None
    ppl_cap: float | None = None


def read_spec(path: Path) -> Spec:
    """Read the spec at `path`, or raise `BadInput` naming the first field that is wrong."""
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError) as fault:
        raise BadInput(f"the spec {path} cannot be read: {fault}") from None
    return parse_spec(values)


def parse_spec(values: object) -> Spec:
    """Return the spec that `values` holds; unknown fields, missing ones and wrong types are `BadInput`."""
    if not isinstance(values, dict):
        raise BadInput("the spec must be a JSON object")
    unknown = sorted(set(values) - {field.name for field in fields(Spec)})
    if unknown:
        raise BadInput(f"the spec has unknown fields: {', '.join(unknown)}")
    _check_texts(values)
    _check_numbers(values)
    if (values.get("base_url") is None) == (values.get("uds") is None):
        raise BadInput("the spec needs exactly one of base_url and uds")
    _check_base_url(values.get("base_url"))
    return Spec(**values)


def _check_texts(values: Mapping[str, object]) -> None:
    for name in _TEXTS:
        value = values.get(name)
        if not (isinstance(value, str) and value):
            raise BadInput(f"the spec's {name} must be a text that is not empty")
    for name in _OPTIONAL_TEXTS:
        value = values.get(name)
        if value is not None and not (isinstance(value, str) and value):
            raise BadInput(f"the spec's {name} must be null or a text that is not empty")


def _check_numbers(values: Mapping[str, object]) -> None:
    for name, least in _LEAST.items():
        value, most = values.get(name), _MOST.get(name, _MOST_OTHERWISE)
        if isinstance(value, bool) or not isinstance(value, int) or not (least <= value <= most):
            raise BadInput(f"the spec's {name} must be a whole number from {least} to {most}")
    if not _is_positive(values.get("request_timeout_s")):
        raise BadInput("the spec's request_timeout_s must be a finite number of seconds over 0")
    cap = values.get("ppl_cap")
    if cap is not None and not _is_positive(cap):
        raise BadInput("the spec's ppl_cap must be null or a finite number over 0")


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def _check_base_url(value: object) -> None:
    if value is None:
        return
    try:
        parts = urlsplit(str(value))
        usable = parts.scheme == "http" and bool(parts.hostname) and parts.port is not None
    except ValueError:
        usable = False
    if not usable:
        raise BadInput("the spec's base_url must look like http://127.0.0.1:8000")
