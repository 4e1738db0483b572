"""Perplexity from the server's own log-probabilities over reference records, with decoys among them.

A decoy is a record whose target tokens are shuffled. Whoever really evaluates the model finds it far less likely than
the record itself; whoever makes numbers up does not know the difference.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from runner.harness import bodies, wire
from runner.harness.faults import FailureCode, SubmissionFault
from runner.harness.keyed_random import KeyedRandom
from runner.harness.prompts import Reference
from runner.harness.replies import read_logprobs
from runner.harness.run_folder import announce
from runner.harness.spec import Spec

DECOY_SHARE = 0.1
DECOY_MARGIN = 0.5  # nats per token by which decoys must be less likely than the records they were made from
_BYTES_PER_TOKEN = 2048


@dataclass(frozen=True)
class Scored:
    """One scored record; `nll` in nats per target token."""

    reference: Reference
    is_decoy: bool
    nll: list[float]
    duration_s: float

    @property
    def total_nll(self) -> float:
        """Return the summed negative log-likelihood of the targets in nats."""
        return math.fsum(self.nll)


@dataclass(frozen=True)
class Perplexity:
    """The records and decoys of a measurement, scored."""

    records: list[Scored]
    decoys: list[Scored]

    @property
    def num_tokens(self) -> int:
        """Return how many target tokens were scored, decoys apart."""
        return sum(len(one.nll) for one in self.records)

    @property
    def total_nll(self) -> float:
        """Return the summed negative log-likelihood of the records in nats."""
        return math.fsum(one.total_nll for one in self.records)

    @property
    def ppl(self) -> float:
        """Return exp(Σ nll ÷ Σ tokens) over all records."""
        return exp(self.total_nll / self.num_tokens)

    @property
    def mean_record_ppl(self) -> float:
        """Return the mean of the records' own perplexities."""
        return math.fsum(exp(one.total_nll / len(one.nll)) for one in self.records) / len(self.records)

    @property
    def decoy_gap(self) -> float:
        """Return by how many nats per token the decoys are less likely than the records they were made from."""
        decoyed = {one.reference.id for one in self.decoys}
        twins = [one for one in self.records if one.reference.id in decoyed]
        return _mean_nll(self.decoys) - _mean_nll(twins)


def score(endpoint: wire.Endpoint, references: Sequence[Reference], spec: Spec) -> Perplexity:
    """Score all records and their decoys in one order drawn from the seed.

    Raises:
        SubmissionFault: bad_logprobs, or decoy_not_noticed when decoys look as likely as real records.
    """
    orders = _orders(references, spec.seed)
    scored = []
    for done, (reference, is_decoy) in enumerate(orders, 1):
        scored.append(_score_one(endpoint, reference, is_decoy, f"scoring request {done}", spec))
        announce("ppl", done, len(orders))
    found = Perplexity([one for one in scored if not one.is_decoy], [one for one in scored if one.is_decoy])
    if not (found.decoy_gap > DECOY_MARGIN):
        raise SubmissionFault(
            FailureCode.DECOY_NOT_NOTICED,
            f"shuffled targets cost {found.decoy_gap:.3f} nats per token more than real ones; "
            f"a model that is really evaluated finds them over {DECOY_MARGIN} worse",
        )
    return found


def exp(nats: float) -> float:
    """Return e to the power of `nats`, at most 1e300, so that every perplexity is finite."""
    return math.exp(min(nats, math.log(1e300)))


def _orders(references: Sequence[Reference], seed: int) -> list[tuple[Reference, bool]]:
    draw = KeyedRandom(f"{seed}:scoring".encode())
    shufflable = [one for one in references if len(set(one.target_token_ids)) > 1]
    count = min(len(shufflable), max(1, round(DECOY_SHARE * len(references))))
    orders = [(one, False) for one in references]
    orders += [(_decoy(one, draw), True) for one in draw.sample(shufflable, count)]
    draw.shuffle(orders)
    return orders


def _decoy(reference: Reference, draw: KeyedRandom) -> Reference:
    shuffled = list(reference.target_token_ids)
    while tuple(shuffled) == reference.target_token_ids:
        draw.shuffle(shuffled)
    return Reference(id=reference.id, prompt_token_ids=reference.prompt_token_ids, target_token_ids=tuple(shuffled))


def _score_one(endpoint: wire.Endpoint, reference: Reference, is_decoy: bool, what: str, spec: Spec) -> Scored:
    ids = [*reference.prompt_token_ids, *reference.target_token_ids]
    started = time.perf_counter()
    body = bodies.scoring_body(spec.served_model_name, ids)
    reply = endpoint.post(bodies.COMPLETIONS, body, most_bytes=wire.HEADROOM_BYTES + _BYTES_PER_TOKEN * len(ids))
    duration_s = time.perf_counter() - started
    logprobs = read_logprobs(reply, ids, len(reference.prompt_token_ids), what)
    return Scored(reference, is_decoy, [-value for value in logprobs], duration_s)


def _mean_nll(scored: Sequence[Scored]) -> float:
    return math.fsum(one.total_nll for one in scored) / sum(len(one.nll) for one in scored)
