"""How much of the time a probe may take for itself."""

from __future__ import annotations

SHARE = 0.005  # of the time in one kind of call; a draft's is in its step's as well, so at most 1 % in all
MOST_S = 0.001  # kept while nothing is spent, so that cheap calls don't pay for many dear ones


class Allowance:
    """Seconds to spend: calls earn them by the time they take, up to a most; the last thing paid for may overdraw it.

    Pauses earn nothing. If they did, the first call after each would be timed, and that is a prefill.
    """

    def __init__(self, *, share: float = SHARE, most_s: float = MOST_S) -> None:
        self._share, self._most_s, self._left_s = share, most_s, most_s
        self.paid_s = 0.0

    def has_left(self) -> bool:
        """Tell whether anything may be spent."""
        return self._left_s > 0

    def settle(self, *, took_s: float, paid_s: float = 0.0) -> None:
        """Earn by a call that took `took_s`, and spend what timing it took."""
        self._left_s = min(self._most_s, self._left_s + self._share * took_s) - paid_s
        self.paid_s += paid_s
