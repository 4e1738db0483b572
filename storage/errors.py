"""Kinds of failure.

Each package subclasses a kind next to the code that raises it, with a stable `code`; one table in
`web.errors` maps kinds to HTTP statuses. A message is one sentence for whoever caused it; a hint says
what to do next.
"""

from typing import ClassVar


class PaddockError(Exception):
    """A failure that has a code, a sentence and perhaps a hint."""

    code: ClassVar[str] = "INTERNAL"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Invalid(PaddockError):
    """What was sent can't be understood or isn't allowed as it is."""

    code = "INVALID_REQUEST"


class InvalidPath(Invalid):
    """A name, path or source URI outside the allowed form."""

    code = "INVALID_PATH"


class InvalidQuery(Invalid):
    """A query parameter outside the allowed form."""

    code = "INVALID_QUERY"


class InvalidFrontmatter(Invalid):
    """Frontmatter that isn't plain, bounded YAML, or lacks what the record needs."""

    code = "INVALID_FRONTMATTER"


class Malformed(PaddockError):
    """JSON, fields or variants of a request that don't fit its schema."""

    code = "INVALID_REQUEST"


class Unauthorized(PaddockError):
    """No valid token came with a call that needs one."""

    code = "UNAUTHORIZED"


class Forbidden(PaddockError):
    """The caller is known and may not do this."""

    code = "FORBIDDEN"


class NotFound(PaddockError):
    """What was named isn't here, or isn't the caller's to see."""

    code = "NOT_FOUND"


class Conflict(PaddockError):
    """What was asked for collides with what is there."""

    code = "CONFLICT"


class PreconditionFailed(PaddockError):
    """Something the caller must make first is missing."""

    code = "PRECONDITION_FAILED"


class TooLarge(PaddockError):
    """More bytes, files or records than the limit in the message."""

    code = "TOO_LARGE"


class TooMany(PaddockError):
    """A rate or count limit is spent; `retry_after_s` is exactly enough."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, *, retry_after_s: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class Unavailable(PaddockError):
    """A part this call depends on doesn't answer; nothing was done."""

    code = "UNAVAILABLE"


class Full(PaddockError):
    """The disk of the store or of the database has no room left; nothing of what was sent was kept."""

    code = "STORAGE_FULL"


class BadGateway(PaddockError):
    """What this call was to start could not be started; nothing was kept."""

    code = "BAD_GATEWAY"


class Corrupt(PaddockError):
    """Stored bytes no longer match their digest. Nothing wrong is handed out."""

    code = "CORRUPT"
