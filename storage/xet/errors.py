"""Name the one error that malformed or dishonest Xet bytes give."""

from storage.errors import Invalid


class InvalidXet(Invalid):
    """Say what is wrong with a hash, xorb or shard that a client sent."""

    code = "INVALID_XET"
