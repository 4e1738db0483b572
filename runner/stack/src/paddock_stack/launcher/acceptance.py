"""Read speculation's counters: how many drafted tokens the model accepted, place by place."""

from __future__ import annotations

import re
from typing import Any

_COUNTER = re.compile(
    r"^vllm:spec_decode_num_(drafts|draft_tokens|accepted_tokens|accepted_tokens_per_pos)_total\{([^}]*)\} (\S+)",
    re.MULTILINE,
)
_POSITION = re.compile(r'position="(\d+)"')


def acceptance(metrics: str) -> dict[str, Any] | None:
    """Return counts and, by position, the share accepted and tokens a step; None where nothing was drafted."""
    counts: dict[str, float] = {}
    places: dict[int, float] = {}
    for name, labels, value in _COUNTER.findall(metrics):
        if name == "accepted_tokens_per_pos":
            places[int(_POSITION.findall(labels)[0])] = float(value)
        else:
            counts[name] = counts.get(name, 0.0) + float(value)
    drafts = counts.get("drafts", 0.0)
    if not drafts > 0:
        return None
    return {
        "drafts": int(drafts),
        "drafted_tokens": int(counts.get("draft_tokens", 0)),
        "accepted_tokens": int(counts.get("accepted_tokens", 0)),
        "accepted_share_by_position": [round(places[place] / drafts, 4) for place in sorted(places)],
        "tokens_per_step": round(1 + counts.get("accepted_tokens", 0.0) / drafts, 4),
    }
