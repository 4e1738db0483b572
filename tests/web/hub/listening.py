"""Serve an application from a thread, on a real port, for libraries that bring their own connections."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from tests.conftest import eventually


@contextmanager
def listening(app: FastAPI) -> Iterator[int]:
    """Serve `app` on a free port of 127.0.0.1, which is given."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", proxy_headers=False))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        eventually(lambda: server.started, what="the server's start")
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
