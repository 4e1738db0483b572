"""Tasks of the zygote about the oracle of bench/h200: the identity of speculative and plain decoding rests on it."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace
from typing import Any

import torch

from tests.runner.stack.serving.zygote import ROOT

IDS = list(range(100, 140))


def answers_with_what_follows_the_newest_token() -> None:
    """Drafts are the told ids after the token that the target just sampled, whatever of its last drafts it refused."""
    drafter, calls = _drafter(), []
    plain = drafter.propose
    drafter.propose = lambda **named: calls.append(named) or plain(**named)
    _oracle().Oracle(drafter).tell(IDS, seed=1)
    draw = random.Random(1)
    told = [token ^ 1 if draw.random() < 0.25 else token for token in IDS]
    assert 0 < sum(one != other for one, other in zip(told, IDS, strict=True)) < len(IDS)
    first = drafter.propose(target_positions=torch.arange(10), token_indices_to_sample=None)
    assert first.tolist() == [told[11:14]]
    verified = torch.arange(10, 14)  # of which the second draft was refused: the row before it gave the newest token
    again = drafter.propose(target_positions=verified, token_indices_to_sample=torch.tensor([1]))
    assert again.tolist() == [told[13:16]]
    assert (again.dtype, again.shape) == (torch.int32, (1, 3))
    assert len(calls) == 2  # the drafter did its work each time
    last = drafter.propose(target_positions=torch.tensor([63]), token_indices_to_sample=None)
    assert last.tolist() == [[0, 0, 0]]


def comparison_finds_the_first_difference() -> None:
    """A prompt that the plain engine answered more shortly proves nothing and is not counted."""
    compare = _oracle().compare
    plain = {1: [5, 6, 7, 8], 2: [5, 6, 7], 3: [5]}
    told = compare(plain, {1: [5, 6, 7], 2: [5, 9, 7], 3: [5, 6], 4: [1]})
    assert told == {"same_as_plain": 1, "compared": 2, "first_difference": [1]}


def _drafter() -> Any:
    drafter = SimpleNamespace(device=torch.device("cpu"), max_model_len=64, num_speculative_tokens=3)
    drafter.propose = lambda **_: torch.zeros(1, 3, dtype=torch.int32)
    return drafter


def _oracle() -> Any:
    sys.path.insert(0, str(ROOT / "bench/h200"))
    import oracle

    return oracle
