"""What the leaderboard can be asked for.

?verification=valid,pending&best_per_agent=true&agent=blue-heron&limit=10&hardware=nvidia-a10g
"""

from collections.abc import Mapping
from dataclasses import dataclass

from agents.names import check_form
from board.listing import read_flag, read_limit
from board.verdicts import State
from storage.errors import InvalidQuery

DEFAULT_STATES = frozenset({State.VALID, State.PENDING})
SHOWN_STATES = (State.VALID, State.PENDING, State.INVALID)
"""The states that a reader is told; `inconclusive` is shown as `pending`."""


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which rows are asked for. `hardware` empty means the challenge's; a `limit` ≤ 0 means all."""

    states: frozenset[State] = DEFAULT_STATES
    best_per_agent: bool = True
    agent: str | None = None
    limit: int = 0
    hardware: str = ""


def read_query(params: Mapping[str, str | None]) -> Query:
    """Read the parameters; an absent or empty one means its default.

    Raises:
        InvalidQuery: one has another form.
        InvalidPath: `agent` is no handle.
    """
    given = {key: value for key, value in params.items() if value}
    return Query(
        states=read_states(given["verification"]) if "verification" in given else DEFAULT_STATES,
        best_per_agent=read_flag("best_per_agent", given.get("best_per_agent", "true")),
        agent=check_form(given["agent"]) if "agent" in given else None,
        limit=read_limit(given.get("limit"), default=0),
        hardware=given.get("hardware", ""),
    )


def read_states(text: str) -> frozenset[State]:
    """Read a comma list of states.

    Raises:
        InvalidQuery: a word in it is none that readers are told.
    """
    words = [word.strip() for word in text.split(",")]
    wrong = [word for word in words if word not in SHOWN_STATES]
    if wrong:
        raise InvalidQuery(
            f"verification must be a comma list of states, not {text!r:.60}.",
            hint=f"The states are {', '.join(SHOWN_STATES)}.",
        )
    return frozenset(State(word) for word in words)
