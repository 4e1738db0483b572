"""What every answer of the application has, whichever route or library made it.

HEAD is GET without the body, and a body over a route's limit is refused in the one shape of an error: FastAPI
answers both by itself in another way.
"""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from web.errors import TOO_LARGE, body_of

_OWN_HEADS = ("/buckets/", "/static/")
"""Where HEAD has routes of its own."""


class Envelope:
    """The outermost part of the application."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        if scope["method"] == "HEAD" and not scope["path"].startswith(_OWN_HEADS):
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        return await self._app(scope, receive, _with_own_refusal(scope, receive, send))


def _without_body(send: Send) -> Send:
    async def forward(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return forward


def _with_own_refusal(scope: Scope, receive: Receive, send: Send) -> Send:
    """Replace the plain text that a body of a known, too large size is answered with."""
    is_replaced = False

    async def forward(message: Message) -> None:
        nonlocal is_replaced
        if message["type"] == "http.response.start":
            is_replaced = message["status"] == 413 and _is_plain(message)
            if is_replaced:
                await JSONResponse(body_of(*TOO_LARGE), 413)(scope, receive, send)
        if not is_replaced:
            await send(message)

    return forward


def _is_plain(start: Message) -> bool:
    return any(name == b"content-type" and value.startswith(b"text/plain") for name, value in start["headers"])
