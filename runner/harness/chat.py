"""The chat endpoint must be there for the people who will use the model; it is asked once and never timed."""

from __future__ import annotations

from runner.harness import bodies, wire
from runner.harness.faults import FailureCode, SubmissionFault
from runner.harness.replies import read_choice
from runner.harness.run_folder import announce
from runner.harness.spec import Spec


def ask_chat(endpoint: wire.Endpoint, spec: Spec) -> None:
    """Check, untimed, that the chat endpoint answers a plain question with a text, or raise chat_unavailable."""
    body = bodies.chat_body(spec.served_model_name, "Name three rivers and the seas they reach.", 16)
    reply = endpoint.post(bodies.CHAT, body, most_bytes=wire.HEADROOM_BYTES)
    check_chat(reply)
    announce("chat", 1, 1)


def check_chat(reply: wire.Reply) -> None:
    """Raise chat_unavailable unless `reply` holds one message with a text."""
    try:
        _, choice = read_choice(reply, "the chat request")
    except SubmissionFault as fault:
        raise SubmissionFault(FailureCode.CHAT_UNAVAILABLE, fault.message) from None
    message = choice.get("message")
    if not (isinstance(message, dict) and isinstance(message.get("content"), str)):
        raise SubmissionFault(FailureCode.CHAT_UNAVAILABLE, "the chat endpoint answered without a message text")
