"""Secrets that prove who somebody is; what is kept of them is a keyed hash."""

import hashlib
import hmac
import secrets
import string
from enum import StrEnum

_ALPHABET = string.ascii_letters + string.digits


class Kind(StrEnum):
    """What a secret opens; a hash of one kind is never that of another."""

    TOKEN = ""
    SESSION = "session:"
    LINK = "link:"
    FORM = "form:"


def random_text(length: int) -> str:
    """Draw letters and digits, just under six bits each."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def keyed_hash(key: bytes, kind: Kind, text: str) -> str:
    """Hash a secret under the site's key; 64 hexadecimal digits."""
    return hmac.new(key, f"{kind}{text}".encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
