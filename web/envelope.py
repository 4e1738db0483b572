"""What every answer of the application has, whichever route or library made it.

HEAD is GET without the body, and a body over a route's limit is refused in the one shape of an error: FastAPI
answers both by itself in another way. A token in an address is refused unread. What is left of a budget that a
call spent stands in headers.
"""

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents.limits import Level, tightest
from web.errors import TOO_LARGE, body_of
from web.redaction import holds_token

HEAD = "paddock.head"
"""In the scope of a request that asked for no body: an endless one need not be made."""

_TOKEN_IN_URL = (
    "TOKEN_IN_URL",
    "A token stands in the address of this call, where logs and histories keep it; nothing was done.",
    "Send it as 'Authorization: Bearer <token>', and replace this one: paddock token rotate, or /account.",
)
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
        if holds_token(scope["path"], scope["query_string"]):
            return await JSONResponse(body_of(*_TOKEN_IN_URL), 400)(scope, receive, send)
        if scope["method"] == "HEAD" and not scope["path"].startswith(_OWN_HEADS):
            scope, send = {**scope, "method": "GET", HEAD: True}, _without_body(send)
        return await self._app(scope, receive, _with_own_refusal(scope, receive, _with_limits(scope, send)))


def _without_body(send: Send) -> Send:
    async def forward(message: Message) -> None:
        await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

    return forward


def _with_limits(scope: Scope, send: Send) -> Send:
    """Say on every answer to a call that spends a budget what is left of the scarcest one.

    `X-RateLimit-Limit` and `-Remaining` count uses, `-Reset` whole seconds until the oldest use comes back. Any other
    refusal than of the budget itself spends nothing, and says nothing.
    """

    async def forward(message: Message) -> None:
        if message["type"] == "http.response.start" and (message["status"] < 300 or message["status"] == 429):
            found = tightest(scope.get("state", {}).get("spent", {}))
            if found is not None:
                message = {**message, "headers": [*message["headers"], *_limit_headers(found)]}
        await send(message)

    return forward


def _limit_headers(found: Level) -> list[tuple[bytes, bytes]]:
    said = {b"x-ratelimit-limit": found.window.limit, b"x-ratelimit-remaining": found.remaining}
    return [(name, str(value).encode()) for name, value in {**said, b"x-ratelimit-reset": found.reset_s}.items()]


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
