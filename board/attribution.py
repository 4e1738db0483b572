"""What stands behind the name on a record: from its bucket, by a bearer, a signed-in person, or nothing."""

from collections.abc import Mapping
from enum import StrEnum

PROOF_KEY, NO_PROOF = "proof", "none"
"""The frontmatter of a record that nobody proved to have written; only the server can write this key."""


class Level(StrEnum):
    """How sure it is that the named author wrote a record."""

    BUCKET = "bucket"
    BEARER = "bearer"
    PERSON = "person"
    SERVER = "server"
    IMPORTED = "imported"
    NONE = NO_PROOF


_OF_VIA = {
    "bucket": Level.BUCKET,
    "raw": Level.BEARER,
    "dashboard": Level.PERSON,
    "server": Level.SERVER,
    "imported": Level.IMPORTED,
}


def level_of(frontmatter: Mapping[str, object]) -> Level:
    """Read a stored record's level; what came by ways unknown here is proven by nobody."""
    via = frontmatter.get("via")
    if PROOF_KEY in frontmatter or not isinstance(via, str):
        return Level.NONE
    return _OF_VIA.get(via, Level.NONE)
