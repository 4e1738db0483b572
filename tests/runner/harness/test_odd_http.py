"""Servers that stretch HTTP: each is measured as any other, or named; none makes the harness fail by itself."""

import gzip
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tests.runner.harness.conftest import Outcome
from tests.runner.harness.endpoint import Endpoint

Harness = Callable[..., Outcome]
OK = b"HTTP/1.1 200 OK\r\n"

FAIR: dict[str, Callable[[bytes], bytes]] = {
    "chunked": lambda body: OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
    "old version": lambda body: b"HTTP/1.0 200 OK\r\n\r\n" + body,
    "until the end": lambda body: OK + b"Connection: close\r\n\r\n" + body,
    "told to go on": lambda body: (
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    ),
}
UNFAIR: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "gzip": (lambda body: OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(body), "bad_response"),
    "wide": (lambda body: OK + b"\r\n" + body.decode().encode("utf-32"), ""),
    "told to go on for ever": (lambda _: b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, "bad_response"),
    "no content": (lambda _: b"HTTP/1.1 204 No Content\r\n\r\n", "request_failed"),
    "another protocol": (lambda _: b"HTTP/1.1 101 Switching\r\n\r\n", "request_failed"),
    "a chunk of less than nothing": (lambda _: OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello", "bad_response"),
    "a chunk of unknown size": (lambda _: OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello", "server_died"),
    "a huge chunk": (lambda _: OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 3000 + b"\r\nhello", ""),
    "endless trailers": (
        lambda _: OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"A: b\r\n" * 400_000,
        "bad_response",
    ),
    "a length of many digits": (lambda _: OK + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}", "bad_response"),
    "a length below zero": (lambda _: OK + b"Content-Length: -1\r\n\r\n{}", "bad_response"),
    "a status of many digits": (lambda _: b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n\r\n", "bad_response"),
    "a status in other digits": (lambda _: "HTTP/1.1 \u0662\u0660\u0660 OK\r\n\r\n".encode(), "bad_response"),
    "nothing": (lambda _: b"", "server_died"),
    "deep": (lambda _: OK + b"\r\n" + b"[" * 900_000, "bad_response"),
    "not Unicode": (lambda _: OK + b'\r\n{"a": "\xff"}', "bad_response"),
    "half a pair": (lambda _: OK + b'\r\n{"choices": [{"token_ids": [], "text": "\\ud800"}]}', "wrong_token_count"),
}


def _writing(make: Callable[[bytes], bytes]) -> Callable[[Any, Any], Any]:
    def bend(_request: Any, answer: Any) -> Any:
        def write(handler: BaseHTTPRequestHandler) -> None:
            handler.wfile.write(make(json.dumps(answer).encode()))

        return write

    return bend


@pytest.mark.parametrize("name", sorted(FAIR))
def test_fair_but_rare_http_is_measured(name: str, harness: Harness) -> None:
    with Endpoint(_writing(FAIR[name])) as endpoint:
        outcome = harness(endpoint)
    assert outcome.status == 0, outcome.stderr
    assert outcome.read("summary.json")["total_output_tokens"] == 60


@pytest.mark.parametrize("name", sorted(UNFAIR))
def test_unfair_http_is_named(name: str, harness: Harness) -> None:
    make, code = UNFAIR[name]
    with Endpoint(_writing(make)) as endpoint:
        outcome = harness(endpoint, request_timeout_s=2)
    if code:
        assert (outcome.status, outcome.code) == (3, code)
    else:
        assert outcome.status in (0, 3)


@pytest.mark.parametrize("token_id", [7.0, True, "7", 10**18, 10**30, None, [7], -0.0, {"7": 7}])
def test_ids_that_are_no_small_integers_are_named(token_id: Any, harness: Harness) -> None:
    def bend(request: Any, answer: Any) -> Any:
        if "prompt" in request:
            answer["choices"][0]["token_ids"][3] = token_id
        return answer

    with Endpoint(bend) as endpoint:
        outcome = harness(endpoint)
    assert (outcome.status, outcome.code) == (3, "token_out_of_range" if token_id == 10**18 else "bad_response")


@pytest.mark.parametrize("logprob", [-1.7e308, -(10**18), -1e10])
def test_log_probabilities_too_low_to_add_up_are_named(logprob: float, harness: Harness) -> None:
    def bend(_request: Any, answer: Any) -> Any:
        for entry in answer["choices"][0].get("prompt_logprobs") or []:
            for scored in (entry or {}).values():
                scored["logprob"] = logprob
        return answer

    with Endpoint(bend) as endpoint:
        outcome = harness(endpoint)
    assert (outcome.status, outcome.code) == (3, "bad_logprobs")


@pytest.mark.alone
def test_the_rate_is_that_of_the_timed_block_alone(harness: Harness) -> None:
    """Warm-up, scoring and chat are made slow, so that any of them in the time would show."""
    timed: list[Any] = []

    def bend(request: Any, answer: Any) -> Any:
        is_timed = "prompt" in request and "prompt_logprobs" not in request and len(request["prompt"]) < 10
        timed.extend([request] if is_timed else [])
        threading.Event().wait(0.2 if is_timed else 0.3)
        return answer

    with Endpoint(bend) as endpoint:
        summary = harness(endpoint).read("summary.json")
    assert len(timed) == 5
    assert summary["tps"] == pytest.approx(5 * 12 / (5 * 0.2), rel=0.15)  # one slow answer in it: 23 % less
    assert summary["tps"] == pytest.approx(summary["total_output_tokens"] / summary["duration_s"])
