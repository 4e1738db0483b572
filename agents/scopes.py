"""What a token may be used for, within its holder's role, and how a caller showed who they are."""

from collections.abc import Iterable
from enum import StrEnum

from agents.roles import Role
from storage.errors import Forbidden, Invalid


class Scope(StrEnum):
    """One kind of use; `bucket` writes buckets over the Hub's protocol."""

    READ = "read"
    POST = "post"
    BUCKET = "bucket"
    RUN = "run"
    OPERATE = "operate"


class Proof(StrEnum):
    """How a caller showed who they are."""

    TOKEN = "token"  # noqa: S105 - a word, no secret
    SESSION = "session"
    SERVER = "server"


ALL = frozenset(Scope)
DEFAULT = ALL - {Scope.OPERATE}
"""What a token may do unless its maker says otherwise."""


class ScopeMissing(Forbidden):
    """The token is valid and not meant for this."""

    code = "SCOPE_MISSING"


class UnknownScope(Invalid):
    """There is no such scope."""

    code = "INVALID_REQUEST"


def held(role: Role, names: Iterable[str]) -> frozenset[Scope]:
    """The scopes that a person of this role has of those a token or session was given."""
    return read_scopes(names) - (frozenset() if role.at_least(Role.OPERATOR) else {Scope.OPERATE})


def read_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Read scopes by name; no names are no scopes.

    Raises:
        UnknownScope: one isn't a scope.
    """
    given = list(names)
    unknown = [name for name in given if name not in tuple(Scope)]
    if unknown:
        raise UnknownScope(f"{unknown[0]!r:.40} is no scope.", hint=f"One of {', '.join(Scope)}.")
    return frozenset(map(Scope, given))
