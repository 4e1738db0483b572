"""Hold a prompt's log-probabilities to what every softmax fulfils, whoever computed it."""

from __future__ import annotations

import math
from collections.abc import Sequence

ROUNDING = 1e-5  # nats over 0 that float32 arithmetic may give
SUM_ROUNDING = 1e-3
Entry = tuple[float, int]  # a token's log-probability in nats, and its rank from 1


def check_best(own: Entry, best: Sequence[Entry]) -> None:
    """Fail unless the `best` tokens, in order, are ranked by their probabilities, and `own` where it belongs."""
    values = [value for value, _ in best]
    assert all(value <= ROUNDING for value in (own[0], *values)), "not a number, or over 0"
    assert math.fsum(map(math.exp, values)) <= 1 + SUM_ROUNDING, "more than all of the probability"
    assert [rank for _, rank in best] == list(range(1, len(best) + 1)), "ranks with gaps"
    assert values == sorted(values, reverse=True), "ranks against the probabilities"
    check_rank(own, values)
    assert own[1] <= len(best) or own[0] <= values[-1], "one of the best has a rank beyond them"


def check_whole(own: Entry, values: Sequence[float]) -> None:
    """Fail unless `values`, of the whole vocabulary, sum to 1, and `own` has the rank that they give it."""
    assert abs(math.fsum(map(math.exp, values)) - 1) <= SUM_ROUNDING, "not all of the probability"
    check_rank(own, values)
    assert own[1] <= sum(value >= own[0] for value in values), "a rank below that of worse tokens"


def check_rank(own: Entry, values: Sequence[float]) -> None:
    """Fail unless fewer of `values` are over own's than its rank says; equal ones may stand on either side."""
    assert sum(value > own[0] for value in values) < own[1], "a rank above that of better tokens"
