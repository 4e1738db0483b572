"""Make a drafter of random weights draft as well as a trained one, and time it.

Such a drafter is never right, so each verification would be of one token, and the rows after its first would be
compared with nothing. The oracle lets the drafter do all its work, then answers with what the same engine without a
drafter (its plain twin) generated, about every fourth token spoilt: at seven drafts that is 3.6 tokens a step, and
each row of a verification is accepted as well as refused. `FOLDER/NAME.ids.json` is how the twin hands its ids over:

    {"1": [417, 22, 9], "1000": [5, 5, 81]}
"""

from __future__ import annotations

import json
import random
import re
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SPOILT = 0.25  # of all positions: acceptance 0.75 a token
SHOWN = 8


def ids_file(folder: Path, name: str) -> Path:
    """Return where the engine `name` leaves its ids; one with a drafter shares its plain twin's."""
    return folder / (re.sub(r"\+mtp\d+", "", name) + ".ids.json")


def read_ids(file: Path) -> dict[int, list[int]]:
    """Return the ids of each seed, none when there is no such file."""
    return {int(seed): ids for seed, ids in json.loads(file.read_text()).items()} if file.exists() else {}


def compare(plain: Mapping[int, list[int]], decoded: Mapping[int, list[int]]) -> dict[str, Any]:
    """Return of how many of the seeds that `plain` has too the ids are the same, and where the others first differ."""
    seeds = [seed for seed in decoded if len(plain.get(seed, [])) >= len(decoded[seed])]
    first = [_first_difference(plain[seed], decoded[seed]) for seed in seeds]
    different = [position for position in first if position is not None]
    return {
        "same_as_plain": len(seeds) - len(different),
        "compared": len(seeds),
        "first_difference": different[:SHOWN],
    }


def _first_difference(plain: list[int], decoded: list[int]) -> int | None:
    pairs = enumerate(zip(plain, decoded, strict=False))
    return next((position for position, (one, other) in pairs if one != other), None)


def drafter_of(llm: Any) -> Any:
    """Return the drafter of an engine that runs in this process (vLLM's Gemma4Proposer).

    Its `propose` is called from Python once a step, outside what is compiled or captured; only its model's passes are.
    """
    return llm.llm_engine.model_executor.driver_worker.worker.model_runner.drafter


class Stopwatch:
    """Time every call of a drafter's `propose`: on a GPU between two events, which nobody waits for meanwhile."""

    def __init__(self, drafter: Any) -> None:
        self._propose, drafter.propose = drafter.propose, self
        self._on_gpu = drafter.device.type == "cuda"
        self._spans: list[tuple[Any, Any]] = []

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what the drafter proposes."""
        began = self._now()
        drafts = self._propose(*arguments, **named)
        self._spans.append((began, self._now()))
        return drafts

    def restart(self) -> None:
        """Forget the calls so far."""
        self._spans.clear()

    def median_ms(self) -> float:
        """Return the middle time of a call since the restart; waits for the GPU."""
        if self._on_gpu:
            self._spans[-1][1].synchronize()
            return float(statistics.median(began.elapsed_time(ended) for began, ended in self._spans))
        return float(statistics.median((ended - began) * 1e3 for began, ended in self._spans))

    def _now(self) -> Any:
        if not self._on_gpu:
            return time.perf_counter()
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event


class Oracle:
    """Stand before a drafter's `propose` and answer with the plain twin's ids; for one request at a time."""

    def __init__(self, drafter: Any) -> None:
        import torch

        self._propose, drafter.propose = drafter.propose, self
        # The last position's drafts reach past the longest sequence.
        size = drafter.max_model_len + drafter.num_speculative_tokens + 2
        self._truth = torch.zeros(size, dtype=torch.int64, device=drafter.device)

    def tell(self, ids: list[int], seed: int) -> None:
        """Say the whole sequence of the request to come, its prompt first; after its end all drafts are 0.

        `seed` chooses which positions are spoilt, so that every prompt is refused elsewhere, and alike by each engine.
        """
        import torch

        draw = random.Random(seed)
        known = [token ^ 1 if draw.random() < SPOILT else token for token in ids]  # vocabularies are even: still an id
        self._truth.copy_(torch.tensor(known + [0] * (len(self._truth) - len(known))))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return the drafts `[1, K]` that follow the target's newest token, without waiting for the GPU.

        `target_positions` [num_tokens] has those of refused tokens too, so `token_indices_to_sample` [1] says which one
        is the last that was accepted; it is None where nothing was drafted, and then that is the last of all. The
        token sampled there comes at the next position, and the drafts after it.
        """
        drafts = self._propose(*arguments, **named)
        positions, chosen = named["target_positions"], named["token_indices_to_sample"]
        last = positions[-1:] if chosen is None else positions[chosen]
        following = self._truth[2:].unfold(0, drafts.shape[1], 1)  # a view: row p holds positions p + 2 to p + 1 + K
        return following[last].to(drafts.dtype).view_as(drafts)
