"""How much of the time a probe may take for itself."""

from __future__ import annotations

SHARE = 0.003  # of the time that passes, for one kind of call; there are at most three, so below 1 % in all
MOST_S = 0.001  # kept while nothing is timed, so that a pause doesn't pay for a dear minute after it


class Allowance:
    """Seconds to spend: they come in as time passes, up to a most, and may be overdrawn by the last thing paid for."""

    def __init__(self, now_s: float, *, share: float = SHARE, most_s: float = MOST_S) -> None:
        self._share, self._most_s = share, most_s
        self._at_s, self._left_s = now_s, most_s
        self.paid_s = 0.0

    def has_left(self, now_s: float) -> bool:
        """Take in what came since it was last asked, and return whether anything may be spent."""
        self._left_s = min(self._most_s, self._left_s + self._share * (now_s - self._at_s))
        self._at_s = now_s
        return self._left_s > 0

    def pay(self, seconds: float) -> None:
        """Spend `seconds`."""
        self._left_s -= seconds
        self.paid_s += seconds
