"""What may follow what."""

import itertools

from runner.states import ENDED, NEXT, State, may_follow, old_word


def test_no_job_ever_goes_back() -> None:
    order = [State.QUEUED, State.PREPARING, State.SERVING, State.MEASURING, State.COMPLETED]
    for earlier, later in itertools.combinations(order, 2):
        assert not may_follow(later, earlier)
    assert all(not may_follow(state, state) for state in State)


def test_an_ended_job_stays_as_it_ended() -> None:
    assert {State.COMPLETED, State.FAILED, State.TIMED_OUT, State.CANCELLED} == ENDED
    assert all(not may_follow(ended, state) for ended in ENDED for state in State)


def test_only_a_measured_job_can_be_completed_and_every_live_one_can_fail() -> None:
    assert [state for state in State if may_follow(state, State.COMPLETED)] == [State.MEASURING]
    assert all(State.FAILED in NEXT[state] for state in State if state not in ENDED)


def test_old_clients_hear_only_words_they_know() -> None:
    assert {old_word(state) for state in State} == {"running", "completed", "error", "canceled", "timed_out"}
    assert old_word(State.QUEUED) == old_word(State.MEASURING) == "running"
