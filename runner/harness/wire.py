"""HTTP to the server under test, over TCP or a unix socket, on one connection that stays open.

The server is hostile until proven otherwise: every request has one deadline that covers all of it, so trickled bytes
win nothing, and one budget of bytes that covers headers and body alike, so its memory is never ours to lose.
"""

from __future__ import annotations

import http.client
import socket
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from runner.harness.faults import FailureCode, SubmissionFault
from runner.harness.spec import Spec

HEADROOM_BYTES = 1 << 20
_PIECE_BYTES = 1 << 16
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}


@dataclass(frozen=True)
class Reply:
    """What came back: HTTP status and the whole body."""

    status: int
    body: bytes


class TooManyBytes(Exception):
    """Stop reading: the reply is larger than its request allows."""


class BoundedSocket(socket.socket):
    """A socket whose reads end at a moment and after a number of bytes, whatever the peer does."""

    deadline = float("inf")
    bytes_left = 0

    def allow(self, *, seconds: float, most_bytes: int) -> None:
        """Give the next request `seconds` from now and `most_bytes` to answer in."""
        self.deadline = time.monotonic() + seconds
        self.bytes_left = most_bytes
        self.settimeout(seconds)

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive as a socket does; raise `TimeoutError` or `TooManyBytes` once a limit is passed."""
        remaining = self.deadline - time.monotonic()
        if not (remaining > 0):
            raise TimeoutError("the request's time is over")
        self.settimeout(remaining)
        received = super().recv_into(buffer, nbytes, flags)
        self.bytes_left -= received
        if self.bytes_left < 0:
            raise TooManyBytes
        return received


class Connection(http.client.HTTPConnection):
    """A connection over a `BoundedSocket`, to a TCP address or to a unix socket."""

    sock: BoundedSocket

    def __init__(self, *, base_url: str | None, uds: str | None, timeout_s: float) -> None:
        parts = urlsplit(base_url or "http://localhost:80")
        super().__init__(parts.hostname or "localhost", parts.port)
        self.uds = uds
        self.timeout_s = timeout_s

    def connect(self) -> None:
        """Open the socket; a fault closes it and leaves no connection."""
        family, address = (socket.AF_UNIX, self.uds) if self.uds else _tcp_address(self.host, self.port)
        opened = BoundedSocket(family, socket.SOCK_STREAM)
        try:
            opened.settimeout(self.timeout_s)
            if not self.uds:
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened.connect(address)
        except BaseException:
            opened.close()
            raise
        self.sock = opened


def _tcp_address(host: str, port: int) -> tuple[int, Any]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return found[0], found[4]


class Endpoint:
    """The server under test. Not for several threads: concurrency is 1 by design."""

    def __init__(self, spec: Spec) -> None:
        self._timeout_s = spec.request_timeout_s
        self._connection = Connection(base_url=spec.base_url, uds=spec.uds, timeout_s=spec.request_timeout_s)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._connection.close()

    def post(self, path: str, body: bytes, *, most_bytes: int) -> Reply:
        """Send `body` and return the whole reply of at most `most_bytes`, headers included.

        Raises:
            SubmissionFault: server_died, request_timeout or bad_response. The connection is closed.
        """
        try:
            return self._post_once_more(path, body, most_bytes)
        except TimeoutError:
            self.close()
            raise SubmissionFault(
                FailureCode.REQUEST_TIMEOUT, f"{path} did not answer in full within {self._timeout_s:g} s"
            ) from None
        except TooManyBytes:
            self.close()
            raise SubmissionFault(
                FailureCode.BAD_RESPONSE, f"{path} sent more than the {most_bytes} bytes its reply may have"
            ) from None
        except (http.client.IncompleteRead, ConnectionError, BlockingIOError, FileNotFoundError) as fault:
            self.close()
            raise SubmissionFault(
                FailureCode.SERVER_DIED,
                f"the connection for {path} was lost: {type(fault).__name__}",
                "see the server's log for why it stopped",
            ) from None
        except (http.client.HTTPException, ValueError, OverflowError) as fault:  # a chunk of size -5 is a ValueError
            self.close()
            raise SubmissionFault(
                FailureCode.BAD_RESPONSE, f"{path} did not speak HTTP: {type(fault).__name__}"
            ) from None

    def _post_once_more(self, path: str, body: bytes, most_bytes: int) -> Reply:
        """Post; where an idle connection turns out closed before any byte came back, try once on a new one."""
        kept_open = self._connection.sock
        try:
            return self._post(path, body, most_bytes)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
            self.close()
            if kept_open is None or kept_open.bytes_left != most_bytes:
                raise
            return self._post(path, body, most_bytes)

    def _post(self, path: str, body: bytes, most_bytes: int) -> Reply:
        if self._connection.sock is None:
            self._connection.connect()
        self._connection.sock.allow(seconds=self._timeout_s, most_bytes=most_bytes)
        self._connection.request("POST", path, body, _HEADERS)
        with self._connection.getresponse() as response:
            pieces = []
            while piece := response.read(_PIECE_BYTES):
                pieces.append(piece)
            if response.length:  # what is still owed of Content-Length; `read` with a size does not complain by itself
                raise http.client.IncompleteRead(b"", response.length)
            return Reply(response.status, b"".join(pieces))
