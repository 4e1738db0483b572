"""What a reply is worth: the ids, text and log-probabilities in it, each checked before anything is counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runner.harness import strict_json
from runner.harness.faults import FailureCode, SubmissionFault
from runner.harness.rendering import ChallengeTokenizer
from runner.harness.wire import Reply

_SHOWN = 300  # characters of a server's own words in a message
_ROUNDING = 1e-5  # nats over 0 that a log-probability may have from float32 arithmetic
_LEAST = -1e9  # nats; no float32 softmax gets near it, and sums of what is above it stay finite
_UNFINISHED = 8  # characters that a server may still hold back at the end of a text
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True)
class Completion:
    """A reply that passed. `reported_tokens` is what the server claims in `usage`; it counts for nothing."""

    token_ids: tuple[int, ...]
    text: str
    reported_tokens: int | None


def refuse_status(reply: Reply, what: str) -> None:
    """Raise request_failed unless the reply's status is 200."""
    if reply.status != 200:
        shown = ascii(reply.body[:_SHOWN].decode("utf-8", "replace"))
        raise SubmissionFault(FailureCode.REQUEST_FAILED, f"{what} was answered with status {reply.status}: {shown}")


def read_choice(reply: Reply, what: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the whole answer and its first choice, or raise request_failed or bad_response."""
    refuse_status(reply, what)
    try:
        answer = strict_json.parse(reply.body)
    except strict_json.NotStrict as fault:
        raise SubmissionFault(FailureCode.BAD_RESPONSE, f"the reply to {what} is refused: {fault}") from None
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not (isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], dict)):
        raise SubmissionFault(FailureCode.BAD_RESPONSE, f"the reply to {what} does not hold exactly one choice")
    return answer, choices[0]


def read_completion(
    reply: Reply, tokenizer: ChallengeTokenizer, prompt_ids: Sequence[int], output_tokens: int, what: str
) -> Completion:
    """Return the completion in `reply` once its ids are `output_tokens` real ones and its text is theirs."""
    answer, choice = read_choice(reply, what)
    token_ids = _token_ids(choice, what)
    _check_count(token_ids, output_tokens, what)
    _check_range(token_ids, tokenizer.vocabulary_size, what)
    text = choice.get("text")
    if not isinstance(text, str):
        raise SubmissionFault(FailureCode.BAD_RESPONSE, f"the reply to {what} has no text in its choice")
    if not (agrees(text, tokenizer.text(token_ids)) or agrees(text, tokenizer.streamed_text(prompt_ids, token_ids))):
        raise SubmissionFault(
            FailureCode.TEXT_MISMATCH, f"the text answered to {what} is not what its token ids decode to"
        )
    return Completion(token_ids, text, _reported_tokens(answer))


def agrees(text: str, decoded: str) -> bool:
    """Return whether a server's `text` is `decoded`.

    A server that decodes token by token writes bytes that are not UTF-8 in its own way and may keep back an unfinished
    end, so replacement characters are left out of the comparison and the last few characters may be missing. Some
    tokenizers drop the space before a first word, others keep it.
    """
    shown, expected = (one.replace(_REPLACEMENT, "").lstrip(" ") for one in (text, decoded))
    return expected.startswith(shown) and len(expected) - len(shown) <= _UNFINISHED


def read_logprobs(reply: Reply, token_ids: Sequence[int], first: int, what: str) -> list[float]:
    """Return the log-probabilities, in nats, of `token_ids[first:]`, each finite and at most 0."""
    _, choice = read_choice(reply, what)
    table = choice.get("prompt_logprobs")
    if not (isinstance(table, list) and len(table) == len(token_ids)):
        raise SubmissionFault(
            FailureCode.BAD_LOGPROBS, f"the reply to {what} lacks one prompt_logprobs entry per prompt token"
        )
    return [_logprob(table[place], token_ids[place], what) for place in range(first, len(token_ids))]


def _logprob(entry: object, token_id: int, what: str) -> float:
    scored = entry.get(str(token_id)) if isinstance(entry, dict) else None
    value = scored.get("logprob") if isinstance(scored, dict) else None
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (usable and value is not None and _LEAST <= value <= _ROUNDING):
        raise SubmissionFault(
            FailureCode.BAD_LOGPROBS, f"the reply to {what} gives a prompt token no finite log-probability of at most 0"
        )
    return min(0.0, float(value))


def _token_ids(choice: dict[str, Any], what: str) -> tuple[int, ...]:
    ids = choice.get("token_ids")
    if not isinstance(ids, list):
        raise SubmissionFault(
            FailureCode.TOKEN_IDS_MISSING,
            f"the reply to {what} has no choices[0].token_ids",
            "the endpoint must honour return_token_ids: true",
        )
    if not all(type(item) is int for item in ids):
        raise SubmissionFault(FailureCode.BAD_RESPONSE, f"the reply to {what} holds token ids that are not integers")
    return tuple(ids)


def _check_count(token_ids: Sequence[int], output_tokens: int, what: str) -> None:
    if len(token_ids) != output_tokens:
        raise SubmissionFault(
            FailureCode.WRONG_TOKEN_COUNT,
            f"{what} was answered with {len(token_ids)} tokens where {output_tokens} were asked for",
            "the endpoint must honour max_tokens and ignore_eos: true",
        )


def _check_range(token_ids: Sequence[int], vocabulary_size: int, what: str) -> None:
    if not all(0 <= token_id < vocabulary_size for token_id in token_ids):
        raise SubmissionFault(
            FailureCode.TOKEN_OUT_OF_RANGE, f"{what} was answered with ids outside the {vocabulary_size} known tokens"
        )


def _reported_tokens(answer: dict[str, Any]) -> int | None:
    usage = answer.get("usage")
    value = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return value if type(value) is int else None
