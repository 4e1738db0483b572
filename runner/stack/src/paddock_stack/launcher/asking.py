"""Ask the server being warmed up, with the key that passes its gate."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any

from paddock_stack.launcher.gate import HEADER, OPEN_PATH
from paddock_stack.refusals import Refused


class NotAnswered(Refused):
    """The server answered a request of the warm-up with an error, or not at all."""


@dataclass(frozen=True)
class Server:
    """A vLLM behind its gate; each call waits at most `timeout_s`."""

    host: str
    port: int
    key: str
    timeout_s: float = 600.0

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON that `body` is answered with; raise `NotAnswered` for anything but 200."""
        status, content = self._call("POST", path, json.dumps(body))
        if status != 200:
            raise NotAnswered(f"{path} answered {status} during the warm-up: {content[:500]}")
        told: dict[str, Any] = json.loads(content)
        return told

    def is_up(self) -> bool:
        """Return whether the server answers behind its gate."""
        try:
            return self._call("GET", "/v1/models")[0] == 200
        except NotAnswered:
            return False

    def metrics(self) -> str:
        """Return the server's counters as text."""
        return self._call("GET", "/metrics")[1]

    def open_gate(self) -> None:
        """Let everybody in from now on."""
        self.post(OPEN_PATH, {})

    def _call(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout_s)
        try:
            headers = {"Content-Type": "application/json", HEADER.decode(): self.key}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as fault:
            raise NotAnswered(f"{path} was not answered: {fault}") from fault
        finally:
            connection.close()
