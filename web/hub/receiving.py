"""Take request bodies to disk as they come, so that none is ever held whole in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from storage.errors import TooLarge
from storage.local.blobs import Blobs

MAX_BODY_BYTES = 4 * 1024 * 1024
"""Largest JSON body that is read whole: a thousand of the longest paths."""

_WRITE_BYTES = 1 << 20


class BodyTooLarge(TooLarge):
    """The body has more bytes than this call takes; nothing of it was kept."""

    code = "BODY_TOO_LARGE"


@asynccontextmanager
async def received(request: Request, blobs: Blobs, *, max_bytes: int) -> AsyncIterator[BinaryIO]:
    """Stream the body into a temporary file, gone at the end of the block unless the store kept it.

    Raises:
        BodyTooLarge: as soon as that is known.
    """
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and not (int(announced) <= max_bytes):
        raise BodyTooLarge(f"The body is larger than the {max_bytes} bytes this call takes.")
    with blobs.incoming() as file:
        await _stream(request, file, max_bytes)
        yield file


async def _stream(request: Request, file: BinaryIO, max_bytes: int) -> None:
    waiting, total = bytearray(), 0
    async for piece in request.stream():
        total += len(piece)
        if not (total <= max_bytes):
            raise BodyTooLarge(f"The body is larger than the {max_bytes} bytes this call takes.")
        waiting += piece
        if len(waiting) >= _WRITE_BYTES:
            await run_in_threadpool(file.write, bytes(waiting))
            waiting.clear()
    file.write(waiting)
    file.flush()
    file.seek(0)
