"""Asks a server that nobody trusts, over a unix socket, whether it is ready; never waits longer than told."""

import http.client
import io
import json
import socket
import time
from pathlib import Path

_MOST_BYTES = 1 << 20
_REQUEST = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n"


class _Bytes:
    """Lets `http.client` parse bytes that were already received."""

    def __init__(self, content: bytes) -> None:
        self._file = io.BytesIO(content)

    def makefile(self, _mode: str) -> io.BytesIO:
        return self._file


def is_ready(address: Path, *, within_s: float) -> bool:
    """Tell whether `GET /v1/models` answers 200 with a JSON object within `within_s`."""
    try:
        received = _ask(address, time.monotonic() + within_s)
        response = http.client.HTTPResponse(_Bytes(received), method="GET")  # type: ignore[arg-type]
        response.begin()
        return response.status == 200 and isinstance(json.loads(response.read(_MOST_BYTES)), dict)
    except (OSError, ValueError, RecursionError, http.client.HTTPException):
        return False


def _ask(address: Path, deadline: float) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(max(deadline - time.monotonic(), 0.01))
        connection.connect(str(address))
        connection.sendall(_REQUEST)
        received = bytearray()
        while len(received) <= _MOST_BYTES and (remaining := deadline - time.monotonic()) > 0:
            connection.settimeout(remaining)
            try:
                piece = connection.recv(1 << 16)
            except TimeoutError:
                break  # a server may keep the connection open; what came is judged
            if not piece:
                break
            received += piece
        return bytes(received)
