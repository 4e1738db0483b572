"""Nobody but the launcher gets through the gate before it is opened, and everybody afterwards."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock_stack.launcher.gate import HEADER, KEY_VARIABLE, OPEN_PATH, Gate

KEY = "0123456789abcdef"


async def _app(scope: Any, receive: Any, send: Any) -> None:
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})


def _ask(gate: Gate, path: str, key: str | None = None, kind: str = "http") -> int | None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [] if key is None else [(HEADER, key.encode())]
    asyncio.run(gate({"type": kind, "path": path, "headers": headers}, None, send))  # type: ignore[arg-type]
    return sent[0]["status"] if sent else None


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    return Gate(_app)


def test_closed_gate_lets_the_key_alone_pass(gate: Gate) -> None:
    assert [_ask(gate, path) for path in ("/v1/models", "/health", "/v1/completions")] == [503] * 3
    assert _ask(gate, "/v1/models", key=KEY[:-1] + "0") == 503
    assert _ask(gate, OPEN_PATH, key="") == 503
    assert _ask(gate, "/v1/models", key=KEY) == 200


def test_opened_gate_stays_open_for_all(gate: Gate) -> None:
    assert _ask(gate, OPEN_PATH, key=KEY) == 200
    assert _ask(gate, "/v1/models") == 200


def test_start_and_stop_of_the_server_pass_a_closed_gate(gate: Gate) -> None:
    assert _ask(gate, "", kind="lifespan") is None


def test_gate_without_a_key_never_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    gate = Gate(_app)
    assert _ask(gate, OPEN_PATH, key="") == 503
