"""Bound what verifying one shard, or granting one xorb, may cost: about a second of one core.

The unit is the hashing of one chunk, 0.6 µs; the rest is weighed in it (figures: bench/README.md).
"""

from storage.xet.errors import InvalidXet
from storage.xet.files import count_chunks
from storage.xet.shards import FileClaim

MOST = 5 << 18
"""Units of one shard: 1.3 million. A new file of 32 GiB takes 0.8, one found elsewhere in small pieces 1.1 million."""

PER_TERM = 8
PER_FILE = 32
PER_TABLE = 512
PER_SEARCH = 768
"""What asking for tables takes, however many a file needs."""


class TooMuch(InvalidXet):
    """Verifying any more of the shard is for another request."""


class Effort:
    """Units spent on one shard so far."""

    def __init__(self) -> None:
        """Start with nothing spent."""
        self._spent = 0

    def spend(self, units: int) -> None:
        """Note work that is about to be done.

        Raises:
            TooMuch: the shard has had its share; the work is not to be done.
        """
        self._spent += units
        if not (self._spent <= MOST):
            hint = "Upload it as several smaller files."
            raise TooMuch("A file of the shard is in too many pieces to be verified at once.", hint=hint)

    def on_file(self, claim: FileClaim) -> None:
        """Note the verification of a file. Raises as `spend`."""
        self.spend(PER_FILE + PER_TERM * len(claim.terms) + count_chunks(claim.terms))

    def on_tables(self, number: int) -> None:
        """Note the loading of so many xorbs' tables at once. Raises as `spend`."""
        self.spend(PER_SEARCH + PER_TABLE * number)
