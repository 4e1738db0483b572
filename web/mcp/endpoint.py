"""`/mcp`: MCP over streamable HTTP, without sessions, so that any worker process can answer any call."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
from fastapi import APIRouter, Request, Response
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from storage.errors import Forbidden
from web.deps import MaybeBearer, TheSite, origin
from web.forms import ForgedForm, check_same_origin
from web.mcp.rest import Rest
from web.mcp.server import build

MAX_REQUEST_BYTES = 2_500_000
"""A message of the largest size fits with every character escaped."""

router = APIRouter(include_in_schema=False, max_body_size=MAX_REQUEST_BYTES)


class OriginNotAllowed(Forbidden):
    """A page of another site tried to speak to this server through its reader's browser."""

    code = "ORIGIN_NOT_ALLOWED"


@router.post("/mcp")
def speak(request: Request, site: TheSite, _caller: MaybeBearer) -> Response:
    """Answer one message of an MCP client; a token that came must be good, and each tool asks for what it needs."""
    if request.headers.get("origin"):
        try:
            check_same_origin(request, site)
        except ForgedForm as error:
            raise OriginNotAllowed("This page's site may not speak MCP to this server.") from error
    return _Spoken()


class _Spoken(Response):
    """The SDK's answer, made while it is sent; its sessions' task group lives as long as this one call."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(
            _SERVER, json_response=True, stateless=True, max_request_body_size=MAX_REQUEST_BYTES
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)
        if self.background is not None:
            await self.background()


@asynccontextmanager
async def _inside(request: Request) -> AsyncIterator[Rest]:
    """Open this very application's API as whoever sent `request`: same token, same address, no network."""
    token = request.headers.get("authorization")
    client = (request.client.host, request.client.port) if request.client else ("", 0)
    transport = httpx2.ASGITransport(request.app, raise_app_exceptions=False, client=client)
    headers = {"Authorization": token} if token else {}
    async with httpx2.AsyncClient(transport=transport, base_url=origin(request), headers=headers) as opened:
        yield Rest(opened)


_SERVER = build(_inside)
