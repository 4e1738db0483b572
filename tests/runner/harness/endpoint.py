"""A model server in a thread, honest until a test bends it. A bigram rule stands in for the model.

After token t comes (7 t + 3) mod 60. The rule's token has a log-probability of -0.1, any other -3.
"""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

VOCABULARY = 64
Request = dict[str, Any]
Bend = Callable[[Request, Request], Any]


def following(token: int) -> int:
    return (7 * token + 3) % 60


def continuation(token: int, count: int) -> list[int]:
    ids = []
    for _ in range(count):
        token = following(token)
        ids.append(token)
    return ids


def honest_answer(request: Request) -> Request:
    """Answer a request as a truthful server would."""
    if "messages" in request:
        return {"choices": [{"index": 0, "message": {"role": "assistant", "content": "w1 w2"}}]}
    prompt = request["prompt"]
    ids = continuation(prompt[-1], request["max_tokens"])
    choice: Request = {"index": 0, "text": " ".join(f"w{token}" for token in ids), "token_ids": ids}
    if "prompt_logprobs" in request:
        choice["prompt_logprobs"] = [None] + [
            {str(token): {"logprob": -0.1 if token == following(before) else -3.0, "rank": 1}}
            for before, token in pairwise(prompt)
        ]
    return {"choices": [choice], "usage": {"completion_tokens": len(ids)}}


class Kind:
    """What a request is for, as a server could guess it."""

    @staticmethod
    def decode(request: Request) -> bool:
        return "prompt" in request and "prompt_logprobs" not in request

    @staticmethod
    def scoring(request: Request) -> bool:
        return "prompt_logprobs" in request

    @staticmethod
    def chat(request: Request) -> bool:
        return "messages" in request


class Endpoint:
    """A server on a TCP port, or on a unix socket at `uds`.

    `bend(request, answer)` returns what is sent instead of `answer`: an object, the bytes of a body, or a function
    that gets the handler and writes what it likes.
    """

    def __init__(self, bend: Bend | None = None, uds: Path | None = None) -> None:
        self.bend = bend
        self.requests: list[Request] = []
        self.connections = 0
        self.stopping = threading.Event()
        self._server = _UnixServer(str(uds), _Handler) if uds else _Server(("127.0.0.1", 0), _Handler)
        self._server.endpoint = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "Endpoint":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    endpoint: Endpoint

    def handle_error(self, *_: object) -> None:
        """Stay silent: clients that hang up are what these tests are about."""


class _UnixServer(_Server):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.endpoint.connections += 1

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        endpoint = self.server.endpoint
        endpoint.requests.append(request)
        answer: Any = honest_answer(request)
        if endpoint.bend is not None:
            answer = endpoint.bend(request, answer)
        if callable(answer):
            with contextlib.suppress(OSError):
                answer(self)
            self.close_connection = True
            return
        self.send(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    def send(self, body: bytes, status: int = 200) -> None:
        head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self.wfile.write(head.encode() + body)

    def log_message(self, *_: object) -> None:
        return
