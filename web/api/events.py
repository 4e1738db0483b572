"""Server-sent events: every change of the board, from the moment of asking or from where a reader left off.

    id: 41
    event: message
    data: {"filename": "20261129-120000-000_blue-heron.md", "agent": "blue-heron", …}

`reset` means that something may have been missed: read anew what you show, and go on from its id.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Annotated, cast

from anyio import CancelScope, create_task_group
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from board import events
from board.rows import EventRow
from storage.database import reading
from storage.errors import Unavailable
from storage.site import Site
from web.api.params import Peer
from web.deps import TheSite
from web.envelope import HEAD
from web.live import Watch

router = APIRouter(tags=["events"])

_AT_ONCE = 200
_HEARTBEAT_S = 15.0
_ID = re.compile(r"[0-9]{1,18}", re.ASCII)
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "X-Content-Type-Options": "nosniff"}


class EventStream(StreamingResponse):
    """A stream of events; `follower` is closed when it ends, however it ends."""

    media_type = "text/event-stream"
    follower: ExitStack

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI names it
        """Stream until the client or the server has enough."""
        with self.follower:
            async with create_task_group() as both:
                both.start_soon(self._watch_client, receive, both.cancel_scope)
                await self.stream_response(send)
                both.cancel_scope.cancel()

    async def _watch_client(self, receive: Receive, scope: CancelScope) -> None:
        """End the stream when its client is gone, not when the next heartbeat fails to reach it."""
        await self.listen_for_disconnect(receive)
        scope.cancel()


def watch_of(site: Site) -> Watch:
    """Make the watch of an application that serves `site`."""

    def newest() -> int:
        with reading(site.engine) as session:
            return events.newest_id(session)

    return Watch(newest)


@router.get("/v1/events", response_class=EventStream)
async def follow(
    request: Request,
    site: TheSite,
    peer: Peer,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
    after: Annotated[
        str | None, Query(max_length=100, description="The same as Last-Event-ID, for a first call.")
    ] = None,
) -> Response:
    """Follow the board: an event for each message, result, note, file, trace, verdict and change of a job's state."""
    watch = cast(Watch, request.app.state.live)
    if watch.is_closed:
        raise Unavailable("The server is stopping.")
    if request.scope.get(HEAD):
        return Response(media_type=EventStream.media_type, headers=_HEADERS)
    with ExitStack() as opened:
        opened.enter_context(watch.follower(peer))
        stream = EventStream(_stream(site, watch, last_event_id or after), headers=_HEADERS)
        stream.follower = opened.pop_all()
    return stream


async def _stream(site: Site, watch: Watch, asked: str | None) -> AsyncIterator[str]:
    last, opening = await asyncio.to_thread(_begin, site, asked)
    yield opening
    while not watch.is_closed:
        rows = await asyncio.to_thread(_after, site, last)
        for row in rows:
            last = row.id or last
            yield _frame(row)
        if not rows and not await watch.grown_past(last, within_s=_HEARTBEAT_S):
            yield ": still here\n\n"


def _begin(site: Site, asked: str | None) -> tuple[int, str]:
    """Find where a reader goes on, and say so: from its last event, or from now if it has none that we know."""
    with reading(site.engine) as session:
        newest = events.newest_id(session)
        if not asked:
            return newest, f"retry: 3000\nid: {newest}\n: from now\n\n"
        if _ID.fullmatch(asked) and not events.is_gap(session, int(asked)):
            return int(asked), "retry: 3000\n\n"
    return newest, f"retry: 3000\nid: {newest}\nevent: reset\ndata: {{}}\n\n"


def _after(site: Site, last: int) -> list[EventRow]:
    with reading(site.engine) as session:
        return events.after(session, last, limit=_AT_ONCE)


def _frame(row: EventRow) -> str:
    return f"id: {row.id}\nevent: {row.kind}\ndata: {json.dumps(row.data)}\n\n"
