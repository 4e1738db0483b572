"""What the draws of a volley prove: hard gates, the measured score, and whether the claim holds. Pure.

Gates, each inclusive at its limit and over all draws of the content: `serves` (none failed through the submission),
`tokens` (each reply had exactly the tokens that were asked for, counted from ids), `guard` (perplexity on the private
records, worst draw), so that posting the same bytes again wipes nothing out. The claim is
judged one-sidedly: it is overclaimed when even the upper 95 % bound of what was measured lies more than the band under
it. That takes the badge off the claim; the entry ranks at its measured value all the same.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from board.statistics import Estimate, estimate
from board.student import t_quantile
from board.verdicts import Draw, Gate, State, Verdict
from runner.states import Fault
from runner.states import State as JobState


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One started draw; `tokens` were counted by the harness, `asked_tokens` is what it asked for."""

    state: JobState
    fault: Fault
    code: str
    score: float | None
    guard: float | None
    tokens: int
    asked_tokens: int
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def is_measured(self) -> bool:
        """Whether the draw was served and measured to its end, with a number that can be ranked."""
        return self.state is JobState.COMPLETED and self.score is not None and 0 < self.score < math.inf


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a verdict is judged by; `planned` counts draws, `cap` is the guard's."""

    planned: int
    cap: float
    claim_band: float
    is_higher_better: bool
    rule_version: int
    hardware: str


def judge(
    draws: Sequence[Outcome],
    earlier: Sequence[Outcome],
    *,
    claimed: float | None,
    rules: Rules,
    opened_at: datetime,
    closed_at: datetime,
) -> Verdict:
    """Conclude a volley whose draws have all ended; `earlier` are the ended draws of the same content before it."""
    measured = [draw for draw in (*earlier, *draws) if draw.is_measured]
    gates = (_serves((*earlier, *draws), rules), _tokens(measured), _guard(measured, rules))
    state, reason = _conclusion(gates, len(measured), rules)
    found = estimate([draw.score for draw in measured if draw.score is not None]) if measured else None
    guards = [draw.guard for draw in measured if draw.guard is not None]
    return Verdict(
        state=state,
        reason=reason,
        measured=found.score if found else None,
        interval_low=found.low if found else None,
        interval_high=found.high if found else None,
        measured_guard=max(guards) if guards else None,
        n=len(measured),
        hardware=rules.hardware,
        claim_state=_claim(found, claimed, rules),
        rule_version=rules.rule_version,
        opened_at=opened_at,
        closed_at=closed_at,
        gates=gates,
        draws=tuple(_shown(index, draw) for index, draw in enumerate((*earlier, *draws), 1)),
    )


def _serves(draws: Sequence[Outcome], rules: Rules) -> Gate:
    failed = [draw.code or draw.state.value for draw in draws if draw.fault is Fault.SUBMISSION]
    served = sum(draw.is_measured for draw in draws)
    return Gate("serves", not failed, measured=served, limit=rules.planned, detail=", ".join(failed))


def _tokens(measured: Sequence[Outcome]) -> Gate:
    wrong = [draw for draw in measured if not (draw.tokens == draw.asked_tokens and draw.tokens > 0)]
    if not measured:
        return Gate("tokens", True, detail="no draw was measured")
    shown = (wrong or measured)[0]
    return Gate("tokens", not wrong, measured=shown.tokens, limit=shown.asked_tokens)


def _guard(measured: Sequence[Outcome], rules: Rules) -> Gate:
    guards = [draw.guard for draw in measured]
    known = [guard for guard in guards if guard is not None]
    passed = len(known) == len(guards) and all(guard <= rules.cap for guard in known)
    return Gate("guard", passed, measured=max(known) if known else None, limit=rules.cap)


def _conclusion(gates: Sequence[Gate], served: int, rules: Rules) -> tuple[State, str]:
    for gate in gates:
        if not gate.passed:
            return State.INVALID, _sentence(gate)
    if not (served >= rules.planned):
        return State.INCONCLUSIVE, f"{served} of {rules.planned} draws could be measured; the others failed through us."
    return State.VALID, ""


def _sentence(gate: Gate) -> str:
    if gate.name == "serves":
        return f"Gate serves: a draw could not be measured ({gate.detail})."
    if gate.measured is None:
        return f"Gate {gate.name}: a draw gave no number."
    return f"Gate {gate.name}: {gate.measured:.6g} where {gate.limit:.6g} is the limit."


def _claim(found: Estimate | None, claimed: float | None, rules: Rules) -> Literal["held", "overclaimed", ""]:
    if found is None or claimed is None:
        return ""
    reach = t_quantile(0.95, found.logs.df) * found.logs.sd / math.sqrt(found.n)
    if rules.is_higher_better:
        holds = math.exp(found.logs.mean + reach) >= claimed * (1 - rules.claim_band)
    else:
        holds = math.exp(found.logs.mean - reach) <= claimed * (1 + rules.claim_band)
    return "held" if holds else "overclaimed"


def _shown(index: int, draw: Outcome) -> Draw:
    is_measured = draw.is_measured
    return Draw(
        index=index,
        state=draw.state.value,
        code=draw.code,
        score=draw.score if is_measured else None,
        guard=draw.guard if is_measured else None,
        started_at=draw.started_at,
        finished_at=draw.finished_at,
    )
