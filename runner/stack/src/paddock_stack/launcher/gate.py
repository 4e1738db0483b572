"""Hold every answer of vLLM's own server back until the warm-up is done.

A middleware of vLLM's API process, and not a proxy in front of it: once open, a request costs one look at an attribute
and no byte is copied. While it is closed only requests with the launcher's own key pass; everybody else, also who asks
for /health or /v1/models, gets 503.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

KEY_VARIABLE = "PADDOCK_GATE_KEY"
HEADER = b"x-paddock-gate"
OPEN_PATH = "/paddock/open"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gate:
    """An ASGI application around vLLM's; closed until a POST to `OPEN_PATH` with the key, and open from then on."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._key = os.environ.pop(KEY_VARIABLE, "").encode()
        self._is_open = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it here."""
        if self._is_open or scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif not self._may_pass(scope):
            await _answer(send, 503, {"error": {"code": "WARMING_UP", "message": "The server is warming up."}})
        elif scope["path"] == OPEN_PATH:
            self._is_open = True
            await _answer(send, 200, {"open": True})
        else:
            await self._app(scope, receive, send)

    def _may_pass(self, scope: Scope) -> bool:
        told = dict(scope.get("headers", ())).get(HEADER, b"")
        return bool(self._key) and scope["type"] == "http" and hmac.compare_digest(told, self._key)


async def _answer(send: Send, status: int, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
