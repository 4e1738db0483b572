"""Name the one exception that every part of the stack raises for a person to read."""


class Refused(Exception):
    """Say in one sentence what was asked that cannot be done, and why; nothing was changed."""
