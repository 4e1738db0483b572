"""Textual, prefixed ids that sort by the time they were made."""

import secrets

from storage.clock import utc_now

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


def _base32(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, low = divmod(number, 32)
        digits.append(_DIGITS[low])
    return "".join(reversed(digits))


def new_id(prefix: str) -> str:
    """Make an id such as `job_01kb5m3v2r-8f3k2m9q`: milliseconds, then 40 random bits."""
    millis = int(utc_now().timestamp() * 1000)
    return f"{prefix}_{_base32(millis, 10)}{_base32(secrets.randbits(40), 8)}"
