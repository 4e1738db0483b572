"""Agent ids, user names and handles: who can be written about, and how.

blue-heron      an agent id        human-ada      the handle of the person `ada`
"""

import re

from storage.errors import InvalidPath

HUMAN = "human-"
SERVER_HANDLES = frozenset({"verifier", "runner", "system"})
"""Handles that the server itself posts under; nobody can register them."""

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", re.ASCII)
_USER = re.compile(r"[a-z0-9-]{1,34}", re.ASCII)
_RESERVED = SERVER_HANDLES | {"human", "main-bucket", "audit"}
_NO_USER = _RESERVED | {"me"}
"""`me` is the caller in paths: /v1/me, /api/buckets/me."""


def check_agent_id(text: str, *, what: str = "agent id") -> str:
    """Return `text` if it is an agent id that can be registered, or another name of that form; `what` says which.

    Raises:
        InvalidPath: with the reason; capitals get the lower-case form as the hint.
    """
    if is_reserved(check_form(text, what=what)):
        raise InvalidPath(f"The {what} {text!r} is reserved.", hint="Choose another name.")
    return text


def check_form(text: str, *, what: str = "agent id") -> str:
    """Return `text` if it has the form of an agent id, reserved or not.

    Raises:
        InvalidPath: as `check_agent_id`.
    """
    if _ID.fullmatch(text):
        return text
    folded = text.lower() if _ID.fullmatch(text.lower()) else None
    raise InvalidPath(
        f"{text!r:.80} is no {what}: 1 to 40 of a-z, 0-9 and inner hyphens.",
        hint=f"Did you mean {folded}?" if folded else None,
    )


def fold_agent_id(text: str) -> str:
    """Return the agent id that a registration under `text` gets; capitals are folded.

    Raises:
        InvalidPath: as `check_agent_id`.
    """
    return check_agent_id(text.lower() if text.isascii() else text)


def user_of(handle: str) -> str | None:
    """The user whom a `human-<user>` handle names, or None for any other text."""
    user = handle.removeprefix(HUMAN)
    return user if user != handle and is_user_name(user) else None


def is_user_name(text: str) -> bool:
    """Tell whether `text` can name a person."""
    return bool(_USER.fullmatch(text)) and text not in _NO_USER


def is_reserved(text: str) -> bool:
    """Tell whether the contract keeps `text` from being an agent id."""
    return text in _RESERVED or text.startswith(HUMAN)
