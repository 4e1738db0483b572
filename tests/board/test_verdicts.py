import json
from datetime import UTC, datetime

import pytest

from board import verdicts
from board.verdicts import BadVerdict, Draw, Gate, State, Verdict

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
WHOLE = Verdict(
    state=State.VALID,
    reason="",
    measured=507.1,
    interval_low=505.2,
    interval_high=509.0,
    measured_guard=2.393,
    n=2,
    hardware="nvidia-a10g",
    claim_state="held",
    rule_version=3,
    opened_at=AT,
    closed_at=AT,
    gates=(Gate("guard", True, 2.393, 2.42, "inclusive"),),
    draws=(
        Draw(1, "completed", "", 507.0, 2.393, AT, AT),
        Draw(2, "failed", "server_died"),
        Draw(3, "completed", "", 507.2, 2.393, AT, AT),
    ),
)


def test_a_verdict_comes_back_from_its_file_as_it_was() -> None:
    assert verdicts.parse(verdicts.to_bytes(WHOLE)) == WHOLE
    assert WHOLE.scores == (507.0, 507.2)


def test_a_verdict_lies_beside_the_results_and_never_under_them() -> None:
    assert verdicts.path_of("20260608-153019-017_a.md") == "verdicts/20260608-153019-017_a/verdict.json"


def test_old_clients_see_what_they_have_no_word_for_as_pending() -> None:
    assert [state.shown for state in State] == ["valid", "invalid", "pending", "pending", "pending"]


def test_keys_of_a_later_version_are_passed_over() -> None:
    fields = {**json.loads(verdicts.to_bytes(WHOLE)), "nodes": 2}
    assert verdicts.parse(json.dumps(fields).encode()) == WHOLE


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 200_000,
        b'{"state": "champion"}',
        b'{"state": "valid"}',
        b'{"state": "pending", "measured": NaN}',
        b'{"state": "pending", "measured": -1}',
        b'{"state": "pending", "interval_high": 1e999}',
        b'{"state": "pending", "claim_state": "sure"}',
        b'{"state": "pending", "opened_at": "2026-11-29T12:00:00"}',
        b'{"state": "pending", "draws": [{"index": 1, "state": "completed", "score": Infinity}]}',
    ],
)
def test_a_file_that_is_no_verdict_is_refused(data: bytes) -> None:
    with pytest.raises(BadVerdict):
        verdicts.parse(data)


@pytest.mark.parametrize("measured", [None, float("nan"), float("inf"), 0.0])
def test_a_valid_verdict_without_a_real_measurement_cannot_be_written(measured: float | None) -> None:
    with pytest.raises(BadVerdict):
        verdicts.to_bytes(Verdict(state=State.VALID, measured=measured))
