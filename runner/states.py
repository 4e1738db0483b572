"""The states of a job and what may follow what: pure."""

from enum import StrEnum


class State(StrEnum):
    """Where a job is; it only moves forward and ends once."""

    QUEUED = "queued"
    PREPARING = "preparing"
    SERVING = "serving"
    MEASURING = "measuring"
    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


class Fault(StrEnum):
    """Whose fault an end was: `submission` is data about it, `ours` is an incident and costs no quota."""

    NONE = ""
    SUBMISSION = "submission"
    OURS = "ours"


_ENDS = frozenset({State.FAILED, State.TIMED_OUT, State.CANCELLED})
NEXT: dict[State, frozenset[State]] = {
    State.QUEUED: frozenset({State.PREPARING, *_ENDS}),
    State.PREPARING: frozenset({State.SERVING, *_ENDS}),
    State.SERVING: frozenset({State.MEASURING, *_ENDS}),
    State.MEASURING: frozenset({State.COMPLETED, *_ENDS}),
    State.COMPLETED: frozenset(),
    State.FAILED: frozenset(),
    State.TIMED_OUT: frozenset(),
    State.CANCELLED: frozenset(),
}
ENDED = frozenset(state for state, after in NEXT.items() if not after)
LEASED = frozenset({State.PREPARING, State.SERVING, State.MEASURING})


def may_follow(now: State, then: State) -> bool:
    """Tell whether a job in `now` may move to `then`."""
    return then in NEXT[now]


def old_word(state: State) -> str:
    """Translate for clients of the public challenge, who know five words."""
    words = {State.COMPLETED: "completed", State.FAILED: "error", State.TIMED_OUT: "timed_out"}
    return {**words, State.CANCELLED: "canceled"}.get(state, "running")
