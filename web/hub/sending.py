"""Send verified bytes: the first piece is checked before the status line goes out."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

from fastapi import Response
from fastapi.responses import StreamingResponse

from web.hub.ranges import Span


class Octets(Response):
    """Bytes as they are, for the description of calls that answer with them."""

    media_type = "application/octet-stream"


RANGED: dict[int | str, dict[str, Any]] = {
    206: {"description": "The range that was asked for.", "content": {Octets.media_type: {}}},
    416: {
        "description": "The range lies outside the bytes there are.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/HubRefusal"}}},
    },
}
"""What calls that take a Range header answer beside the whole."""
UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "The caller holds these very bytes."}}

_PIECE_BYTES = 1 << 20  # chunks are small; each piece costs a hop between threads


def send(pieces: Iterator[bytes], span: Span, size: int, headers: dict[str, str]) -> Response:
    """Answer with the bytes of `span` out of `size`, 206 where a range was asked for.

    Raises:
        Corrupt: the first piece is damaged. A later one breaks the connection before its bytes are sent.
    """
    gathered = _gather(pieces)
    first = next(gathered, b"")
    headers = headers | {"Content-Length": str(span.length), "Accept-Ranges": "bytes"}
    if span.is_partial:
        headers["Content-Range"] = span.content_range(size)
    status = 206 if span.is_partial else 200
    if len(first) == span.length:
        return Response(first, status, headers)
    return StreamingResponse(chain([first], gathered), status, headers)


def _gather(pieces: Iterator[bytes]) -> Iterator[bytes]:
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        if len(waiting) >= _PIECE_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)
