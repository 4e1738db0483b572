"""Keep tokens out of URLs and out of logs, where others would read them later."""

import logging
import re
import traceback
from urllib.parse import unquote_plus

from agents.tokens import PREFIX, is_well_formed

_LIKE_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9]{{8,}}", re.ASCII)
_WHOLE = 38
_SHOWN = f"{PREFIX}…"


def holds_token(path: str, query: bytes) -> bool:
    """Tell whether a request's address holds something that is a token of ours by its checksum, valid or not."""
    text = f"{path}?{unquote_plus(query.decode('latin-1'))}"
    return any(is_well_formed(found[: len(PREFIX) + _WHOLE]) for found in _LIKE_TOKEN.findall(text))


def redact(text: str) -> str:
    """Shorten everything in `text` that looks like a token."""
    return _LIKE_TOKEN.sub(_SHOWN, text)


class RedactedRecord(logging.LogRecord):
    """A log record whose text, and whose traceback's text, hold no token."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]  # logging's own arguments, whatever they are
        if self.exc_info and self.exc_info[0] is not None:
            self.exc_text = redact("".join(traceback.format_exception(*self.exc_info)).rstrip())

    def getMessage(self) -> str:  # noqa: N802 - logging's name
        """Return the message as it may be written down."""
        return redact(super().getMessage())


def redact_logs() -> None:
    """Make every log record of this process a redacted one, whichever library writes it."""
    logging.setLogRecordFactory(RedactedRecord)
