"""A model server that answers every completion alike after a fixed time, whole or streamed. Standard library only."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "fixed-delay"


@dataclass(frozen=True)
class Answer:
    """What every request gets, `delay_s` seconds after it has arrived."""

    delay_s: float
    token_ids: list[int]
    text: str

    def whole(self) -> bytes:
        """Return the JSON of a reply that is not streamed."""
        choice = {"index": 0, "text": self.text, "token_ids": self.token_ids, "finish_reason": "length"}
        return json.dumps({"model": MODEL, "choices": [choice], "usage": self._usage()}).encode()

    def streamed(self) -> bytes:
        """Return the same reply as server-sent events: one with the text, one with the usage, the end."""
        choice = {"index": 0, "text": self.text, "finish_reason": "length"}
        events = [{"choices": [choice]}, {"choices": [], "usage": self._usage()}]
        return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"

    def chat(self) -> bytes:
        """Return the JSON of a chat reply."""
        return json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": self.text}}]}).encode()

    def _usage(self) -> dict[str, int]:
        count = len(self.token_ids)
        return {"prompt_tokens": 0, "completion_tokens": count, "total_tokens": count}


@contextmanager
def serving(answer: Answer) -> Iterator[str]:
    """Serve `answer` on a free port of the loopback interface and yield the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answer))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(json.dumps({"data": [{"id": MODEL}]}).encode())

        def do_POST(self) -> None:
            due = time.perf_counter() + answer.delay_s
            request: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_streamed = bool(request.get("stream"))
            body = answer.chat() if "messages" in request else answer.streamed() if is_streamed else answer.whole()
            time.sleep(max(0.0, due - time.perf_counter()))
            self._send(body, "text/event-stream" if is_streamed else "application/json")

        def _send(self, body: bytes, kind: str = "application/json") -> None:
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            self.wfile.write(head.encode() + body)

        def log_message(self, *_: object) -> None:
            return

    return Handler
