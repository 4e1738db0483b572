"""States as a shape and a word, never colour alone."""

from dataclasses import dataclass

from board.rows import ResultRow


@dataclass(frozen=True)
class Badge:
    """`look` is the style class, `icon` the symbol of the sprite, `word` what is read."""

    look: str
    icon: str
    word: str


VALID = Badge("valid", "valid", "Valid")
INVALID = Badge("invalid", "invalid", "Invalid")
PENDING = Badge("pending", "pending", "Pending")
UNSURE = Badge("unsure", "unsure", "Inconclusive")
RECORD = Badge("record", "record", "Fastest verified")

_VERDICTS = {"valid": VALID, "invalid": INVALID, "pending": PENDING, "inconclusive": UNSURE}
_JOBS = {
    "completed": Badge("valid", "valid", "Completed"),
    "failed": Badge("invalid", "invalid", "Failed"),
    "timed_out": Badge("invalid", "invalid", "Timed out"),
    "cancelled": Badge("unsure", "unsure", "Cancelled"),
    "queued": Badge("pending", "pending", "Queued"),
}


def of_verdict(state: str) -> Badge:
    """Find the badge of a verification state; an unknown state is shown as undecided, by its own name."""
    return _VERDICTS.get(state) or Badge("unsure", "unsure", state.replace("_", " ").capitalize() or "Unknown")


def of_result(row: ResultRow) -> Badge:
    """Find the badge of a result; one that was taken away or can't be read has no verdict to wait for."""
    if row.kept_off in ("retracted", "hidden"):
        return Badge("unsure", "unsure", row.kept_off.capitalize())
    return Badge("unsure", "invalid", "Can’t be read") if row.malformed else of_verdict(row.verification)


def of_job(state: str) -> Badge:
    """Find the badge of a job's state; the running ones are named by their stage."""
    return _JOBS.get(state) or Badge("pending", "pending", state.capitalize())


def of_check(passed: bool) -> Badge:
    """Find the badge of a gate."""
    return Badge("valid", "valid", "Passed") if passed else Badge("invalid", "invalid", "Failed")
