"""The checks of log-probabilities fail for forged ones."""

from __future__ import annotations

import math

import pytest

from tests.runner.stack.profiles.probabilities import Entry, check_best, check_whole

HONEST = [math.log(share) for share in (0.5, 0.25, 0.125, 0.125)]
RANKED = [(value, rank) for rank, value in enumerate(HONEST, 1)]


@pytest.mark.parametrize("own", [*RANKED, (HONEST[3], 3)])
def test_softmax_passes(own: Entry) -> None:
    check_best(own, RANKED)
    check_whole(own, HONEST)


@pytest.mark.parametrize(
    ("own", "best", "sentence"),
    [
        ((math.nan, 1), RANKED, "not a number"),
        ((0.5, 1), [(0.5, 1), *RANKED[1:]], "over 0"),
        ((0.0, 1), [(0.0, rank) for rank in (1, 2, 3)], "more than all"),
        (RANKED[0], [RANKED[0], RANKED[2]], "gaps"),
        (RANKED[0], [(-2.0, 1), (-1.0, 2)], "against the probabilities"),
        ((HONEST[1], 1), RANKED, "above that of better"),
        ((HONEST[0], 9), RANKED, "a rank beyond"),
    ],
)
def test_forged_ones_are_noticed(own: Entry, best: list[Entry], sentence: str) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_best(own, best)


def test_constant_and_misplaced_ones_are_noticed_among_all() -> None:
    with pytest.raises(AssertionError, match="not all of the probability"):
        check_whole((-3.0, 1), [-3.0] * 4)
    with pytest.raises(AssertionError, match="below that of worse"):
        check_whole((HONEST[0], 2), HONEST)
