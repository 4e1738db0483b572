"""Text from JSON that can be stored and sent back: JSON can spell half a character, UTF-8 can't."""

from typing import Annotated

from pydantic import AfterValidator

UNSTORABLE = "The request holds a character that no record can hold."
"""Said of text that PostgreSQL has no form for, such as a NUL; SQLite takes it and finds nothing."""


def _encodable(text: str) -> str:
    text.encode()  # pydantic reports its UnicodeEncodeError, a ValueError, as a field that is wrong
    return text


Text = Annotated[str, AfterValidator(_encodable)]
