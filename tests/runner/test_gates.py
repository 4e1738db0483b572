"""From draws to a verdict: pure."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from board.verdicts import State, Verdict, to_bytes
from runner.gates import Outcome, Rules, judge
from runner.states import Fault
from runner.states import State as JobState

AT = datetime(2026, 11, 29, 12, tzinfo=UTC)
GOOD = Outcome(
    state=JobState.COMPLETED,
    fault=Fault.NONE,
    code="",
    score=500.0,
    guard=2.3,
    tokens=64,
    asked_tokens=64,
    started_at=AT,
    finished_at=AT,
)
FAILED = replace(GOOD, state=JobState.FAILED, fault=Fault.SUBMISSION, code="server_exited", score=None, guard=None)
LOST = replace(GOOD, state=JobState.FAILED, fault=Fault.OURS, code="worker_lost", score=None, guard=None)
RULES = Rules(planned=2, cap=2.42, claim_band=0.02, is_higher_better=True, rule_version=1, hardware="cpu")


def _judge(*draws: Outcome, earlier: tuple[Outcome, ...] = (), claimed: float | None = 500.0) -> Verdict:
    verdict = judge(draws, earlier, claimed=claimed, rules=RULES, opened_at=AT, closed_at=AT)
    to_bytes(verdict)
    return verdict


def _failed_gates(verdict: Verdict) -> list[str]:
    return [gate.name for gate in verdict.gates if not gate.passed]


def test_draws_that_pass_every_gate_are_valid_at_their_geometric_mean() -> None:
    verdict = _judge(replace(GOOD, score=400.0), replace(GOOD, score=900.0))
    assert (verdict.state, verdict.reason, verdict.n) == (State.VALID, "", 2)
    assert verdict.measured == pytest.approx(600.0)
    assert verdict.interval_low is not None
    assert verdict.interval_low < 600 < (verdict.interval_high or 0)


@pytest.mark.parametrize("guard", [2.43, float("nan"), float("inf"), None])
def test_a_guard_over_its_cap_or_without_a_number_is_invalid(guard: float | None) -> None:
    bad = replace(GOOD, guard=guard)
    verdict = judge([GOOD, bad], [], claimed=None, rules=RULES, opened_at=AT, closed_at=AT)
    assert verdict.state is State.INVALID
    assert _failed_gates(verdict) == ["guard"]


def test_a_guard_exactly_at_its_cap_passes() -> None:
    assert _judge(GOOD, replace(GOOD, guard=2.42)).state is State.VALID


def test_one_draw_that_the_submission_failed_makes_it_invalid_and_names_the_failure() -> None:
    verdict = _judge(GOOD, FAILED)
    assert verdict.state is State.INVALID
    assert _failed_gates(verdict) == ["serves"]
    assert "server_exited" in verdict.reason
    assert [draw.code for draw in verdict.draws] == ["", "server_exited"]


def test_draws_lost_through_us_never_make_a_result_invalid() -> None:
    verdict = _judge(GOOD, LOST)
    assert verdict.state is State.INCONCLUSIVE
    assert "1 of 2" in verdict.reason
    assert len(verdict.draws) == 2
    assert _judge(LOST, LOST).measured is None


def test_a_replaced_draw_stays_listed_and_the_rest_decides() -> None:
    verdict = _judge(GOOD, LOST, GOOD)
    assert (verdict.state, verdict.n, len(verdict.draws)) == (State.VALID, 2, 3)


def test_a_wrong_number_of_tokens_is_invalid() -> None:
    assert _failed_gates(_judge(GOOD, replace(GOOD, tokens=63))) == ["tokens"]


def test_an_overclaim_loses_its_badge_and_nothing_else() -> None:
    verdict = _judge(GOOD, GOOD, claimed=600.0)
    assert (verdict.state, verdict.claim_state) == (State.VALID, "overclaimed")
    assert verdict.measured == pytest.approx(500.0)
    assert _judge(GOOD, GOOD, claimed=505.0).claim_state == "held"
    assert _judge(GOOD, GOOD, claimed=400.0).claim_state == "held"
    assert _judge(GOOD, GOOD, claimed=None).claim_state == ""


def test_where_less_is_better_a_claim_is_judged_the_other_way() -> None:
    rules = replace(RULES, is_higher_better=False)
    low = judge([GOOD, GOOD], [], claimed=400.0, rules=rules, opened_at=AT, closed_at=AT)
    high = judge([GOOD, GOOD], [], claimed=600.0, rules=rules, opened_at=AT, closed_at=AT)
    assert (low.claim_state, high.claim_state) == ("overclaimed", "held")


def test_earlier_draws_of_the_same_content_are_pooled_and_shown() -> None:
    verdict = _judge(GOOD, GOOD, earlier=(replace(GOOD, score=400.0), LOST, replace(GOOD, score=400.0)))
    assert verdict.n == 4
    assert verdict.measured == pytest.approx((500.0**2 * 400.0**2) ** 0.25)
    assert [draw.index for draw in verdict.draws] == [1, 2, 3, 4, 5]
