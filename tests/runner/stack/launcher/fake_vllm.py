"""Stands in for vLLM: the same gate and answers by the standard library alone. FAKE_FAULT names what goes wrong."""

from __future__ import annotations

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = os.environ["PADDOCK_GATE_KEY"]
FAULT = os.environ.get("FAKE_FAULT", "")
LOG = """\
Initializing a V1 LLM engine (v0.33.0) with config: 'cudagraph_capture_sizes': [1, 2, 4, 8]
Using AttentionBackendEnum.TRITON_ATTN backend.
Using MarlinLinearKernel for CompressedTensorsWNA16
Asynchronous scheduling is enabled.
"""
METRICS = """\
vllm:spec_decode_num_drafts_total{engine="0"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine="0"} 20.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 12.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="0"} 8.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",position="1"} 4.0
"""
is_open = False


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self._passes():
            self._send(METRICS.encode() if self.path == "/metrics" else b'{"data": []}')

    def do_POST(self) -> None:
        global is_open
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._passes():
            return
        if self.path == "/paddock/open":
            is_open = True
        if FAULT == "refuses" and self.path == "/v1/chat/completions":
            self._send(b"no", 500)
            return
        self._send(json.dumps(_answer(self.path, asked)).encode())

    def _passes(self) -> bool:
        if is_open or self.headers.get("x-paddock-gate") == KEY:
            return True
        self._send(b'{"error": {}}', 503)
        return False

    def _send(self, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _answer(path: str, asked: dict[str, Any]) -> dict[str, Any]:
    if path == "/tokenize":
        return {"tokens": list(range(3 * len(asked["prompt"].split())))}
    given = asked.get("prompt", ())
    length = len(given) or 3 * len(asked.get("messages", [{"content": ""}])[0]["content"].split())
    most = asked.get("max_tokens", 0) - (FAULT == "short")
    scores = [None] * len(given) if "prompt_logprobs" in asked else None
    return {"usage": {"prompt_tokens": length, "completion_tokens": most}, "choices": [{"prompt_logprobs": scores}]}


if __name__ == "__main__":
    print(LOG, flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("EngineDeadError"))  # as vLLM 0.32 says of a clean end
    if FAULT == "dies":
        sys.exit(7)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), Answers).serve_forever()
