"""One test per thing a server can do wrong: each ends with status 3 and its own code, and none takes us down."""

import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runner.harness.conftest import OUTPUT_TOKENS, Outcome
from tests.runner.harness.endpoint import VOCABULARY, Bend, Endpoint, Kind, Request

Harness = Callable[..., Outcome]
Handler = Any
SHORT_S = 0.6


def changed_choice(when: Callable[[Request], bool], **changes: Any) -> Bend:
    """Bend the first choice of the replies to one kind of request."""

    def bend(request: Request, answer: Request) -> Request:
        if when(request):
            answer["choices"][0] |= changes
        return answer

    return bend


def instead(when: Callable[[Request], bool], other: Any) -> Bend:
    """Send something else in place of the replies to one kind of request."""
    return lambda request, answer: other if when(request) else answer


def fail(harness: Harness, bend: Bend, **changes: Any) -> Outcome:
    with Endpoint(bend) as endpoint:
        outcome = harness(endpoint, **changes)
    assert outcome.status == 3
    assert not (outcome.folder / "summary.json").exists()
    return outcome


def test_status_other_than_200_is_request_failed(harness: Harness) -> None:
    outcome = fail(harness, instead(Kind.decode, lambda handler: handler.send(b"out of \xf0 memory", 500)))
    assert outcome.code == "request_failed"
    assert "500" in outcome.read("failure.json")["message"]


def test_nobody_listening_is_server_died(harness: Harness) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        outcome = harness(base_url=f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert (outcome.status, outcome.code) == (3, "server_died")


def test_missing_unix_socket_is_server_died(harness: Harness, tmp_path: Path) -> None:
    outcome = harness(uds=str(tmp_path / "nobody"))
    assert (outcome.status, outcome.code) == (3, "server_died")


def test_connection_lost_before_the_reply_is_server_died(harness: Harness) -> None:
    assert fail(harness, instead(Kind.scoring, lambda _handler: None)).code == "server_died"


def test_connection_lost_within_the_reply_is_server_died(harness: Harness) -> None:
    half = b'HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"choices": ['
    assert fail(harness, instead(Kind.decode, lambda handler: handler.wfile.write(half))).code == "server_died"


def test_silence_is_request_timeout(harness: Harness) -> None:
    def wait(handler: Handler) -> None:
        handler.server.endpoint.stopping.wait()

    started = time.monotonic()
    assert fail(harness, instead(Kind.decode, wait), request_timeout_s=SHORT_S).code == "request_timeout"
    assert time.monotonic() - started < SHORT_S + 4


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: ", b""],
    ids=["body", "header", "status line"],
)
def test_trickled_bytes_are_cut_at_the_deadline_of_the_whole_request(harness: Harness, start: bytes) -> None:
    def trickle(handler: Handler) -> None:
        handler.wfile.write(start)
        while not handler.server.endpoint.stopping.wait(0.02):
            handler.wfile.write(b" ")

    assert fail(harness, instead(Kind.decode, trickle), request_timeout_s=SHORT_S).code == "request_timeout"


DEEP = b'{"choices": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"\xff\xfe",
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [1]}',
        b'{"choices": [{"token_ids": [NaN]}]}',
        b'{"choices": [{"token_ids": [Infinity]}]}',
        b'{"choices": [{"token_ids": [1e999]}]}',
        b'{"choices": [{"token_ids": [' + b"9" * 401 + b"]}]}",
        b'{"choices": [{"token_ids": ["1"]}]}',
        b'{"choices": [{"token_ids": [true]}]}',
        DEEP,
    ],
    ids=lambda body: body[:40].decode("latin-1") or "empty",
)
def test_reply_that_is_not_the_json_we_ask_for_is_bad_response(harness: Harness, body: bytes) -> None:
    assert fail(harness, instead(Kind.decode, body)).code == "bad_response"


def test_reply_that_is_not_http_is_bad_response(harness: Harness) -> None:
    outcome = fail(harness, instead(Kind.decode, lambda handler: handler.wfile.write(b"ICY 200 OK\r\n\r\n")))
    assert outcome.code == "bad_response"


def test_hundred_megabytes_are_refused_long_before_they_have_arrived(harness: Harness) -> None:
    sent = []

    def flood(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(100):
            handler.wfile.write(b" " * 1_000_000)
            sent.append(1_000_000)

    assert fail(harness, instead(Kind.decode, flood)).code == "bad_response"
    assert sum(sent) < 50_000_000


def test_endless_headers_are_refused(harness: Harness) -> None:
    def flood(handler: Handler) -> None:
        handler.wfile.write(b"HTTP/1.1 100 Continue\r\n")
        while not handler.server.endpoint.stopping.is_set():
            handler.wfile.write(b"X-A: " + b"a" * 60_000 + b"\r\n\r\nHTTP/1.1 100 Continue\r\n")

    assert fail(harness, instead(Kind.decode, flood)).code == "bad_response"


def test_reply_without_token_ids_is_named(harness: Harness) -> None:
    assert fail(harness, changed_choice(Kind.decode, token_ids=None)).code == "token_ids_missing"


@pytest.mark.parametrize("count", [0, OUTPUT_TOKENS - 1, OUTPUT_TOKENS + 1])
def test_any_other_number_of_tokens_than_asked_for_is_named(harness: Harness, count: int) -> None:
    assert fail(harness, changed_choice(Kind.decode, token_ids=[5] * count)).code == "wrong_token_count"


@pytest.mark.parametrize("token_id", [VOCABULARY, -1, 10**18])
def test_id_outside_the_vocabulary_is_named(harness: Harness, token_id: int) -> None:
    bend = changed_choice(Kind.decode, token_ids=[5] * (OUTPUT_TOKENS - 1) + [token_id])
    assert fail(harness, bend).code == "token_out_of_range"


@pytest.mark.parametrize("text", ["something else", "", "w1 " * 40, "\ud800"])
def test_text_that_the_ids_do_not_decode_to_is_named(harness: Harness, text: str) -> None:
    assert fail(harness, changed_choice(Kind.decode, text=text)).code == "text_mismatch"


def table(logprob: Any) -> Bend:
    """Answer every scored token with one value in place of its log-probability."""

    def bend(request: Request, answer: Request) -> Any:
        if not Kind.scoring(request):
            return answer
        entries = [None] + [{str(token): {"logprob": logprob}} for token in request["prompt"][1:]]
        answer["choices"][0]["prompt_logprobs"] = entries
        return json.dumps(answer).encode()

    return bend


@pytest.mark.parametrize("logprob", [0.5, 1e-4, None, "-1", True, [], 10**18])
def test_logprob_that_is_no_number_of_at_most_0_is_named(harness: Harness, logprob: Any) -> None:
    assert fail(harness, table(logprob)).code == "bad_logprobs"


@pytest.mark.parametrize("logprob", [float("nan"), float("-inf")])
def test_logprob_that_json_cannot_say_is_bad_response(harness: Harness, logprob: float) -> None:
    assert fail(harness, table(logprob)).code == "bad_response"


@pytest.mark.parametrize("entries", [None, [], [None], {"0": None}, [{}] * 12])
def test_logprobs_that_do_not_cover_the_record_are_named(harness: Harness, entries: Any) -> None:
    assert fail(harness, changed_choice(Kind.scoring, prompt_logprobs=entries)).code == "bad_logprobs"


@pytest.mark.parametrize("logprob", [-0.1, 0.0, -3.0])
def test_server_that_finds_shuffled_targets_as_likely_as_real_ones_is_named(harness: Harness, logprob: float) -> None:
    assert fail(harness, table(logprob)).code == "decoy_not_noticed"


@pytest.mark.parametrize("answer", [{}, {"choices": [{"message": {"content": None}}]}, {"choices": [{"text": "w1"}]}])
def test_chat_without_an_answer_is_named_and_the_measured_files_stay(harness: Harness, answer: Any) -> None:
    outcome = fail(harness, instead(Kind.chat, answer))
    assert outcome.code == "chat_unavailable"
    assert (outcome.folder / "benchmark.jsonl").exists()


def test_huge_but_finite_perplexity_is_written_as_a_finite_number(harness: Harness) -> None:
    def far_off(request: Request, answer: Request) -> Any:
        for entry in answer["choices"][0].get("prompt_logprobs") or []:
            for scored in (entry or {}).values():
                scored["logprob"] = scored["logprob"] * 1e6
        return answer

    with Endpoint(far_off) as endpoint:
        outcome = harness(endpoint)
    assert outcome.status == 0
    assert outcome.read("summary.json")["ppl_within_cap"] is False


def test_failure_message_never_carries_raw_bytes_of_the_server(harness: Harness) -> None:
    outcome = fail(harness, instead(Kind.decode, lambda handler: handler.send(b"\x1b[2J\xff" * 5000, 503)))
    message = outcome.read("failure.json")["message"]
    assert message.isascii()
    assert message.isprintable()
    assert len(message) < 3000
    assert outcome.stderr.isascii()
