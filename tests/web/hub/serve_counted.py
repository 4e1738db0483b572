"""Serve the Hub's routes and write down what uploads cost: `serve_counted.py DATA CHALLENGE PORT LOG`.

One line for each request: method, path, status, bytes of its body.
"""

import sys
from pathlib import Path
from typing import Any

import uvicorn

from storage.settings import Settings
from storage.site import open_site
from tests.web.hub.serve_hub import hub_app


class Counted:
    """An application that counts the bytes of request bodies."""

    def __init__(self, app: Any, log: Path) -> None:
        self._app = app
        self._log = log

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = {"bytes": 0, "status": 0}

        async def receive_counted() -> Any:
            message = await receive()
            seen["bytes"] += len(message.get("body", b""))
            return message

        async def send_noted(message: Any) -> None:
            if message["type"] == "http.response.start":  # before the client can go on
                with self._log.open("a") as log:
                    log.write(f"{scope['method']} {scope['path']} {message['status']} {seen['bytes']}\n")
            await send(message)

        await self._app(scope, receive_counted, send_noted)


if __name__ == "__main__":
    data, challenge, port, log = sys.argv[1:]
    opened = open_site(Settings(data=Path(data), challenge=Path(challenge)))
    uvicorn.run(Counted(hub_app(opened), Path(log)), host="127.0.0.1", port=int(port), log_level="warning")
