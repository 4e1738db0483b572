"""Whose fault it is: a submission that fails is data (`SubmissionFault`), a bad order is an incident (`BadInput`)."""

from enum import StrEnum


class FailureCode(StrEnum):
    """The stable names of what a submission's server can do wrong."""

    REQUEST_FAILED = "request_failed"
    SERVER_DIED = "server_died"
    REQUEST_TIMEOUT = "request_timeout"
    BAD_RESPONSE = "bad_response"
    TOKEN_IDS_MISSING = "token_ids_missing"  # noqa: S105 - a name, not a secret
    WRONG_TOKEN_COUNT = "wrong_token_count"  # noqa: S105 - a name, not a secret
    TOKEN_OUT_OF_RANGE = "token_out_of_range"  # noqa: S105 - a name, not a secret
    TEXT_MISMATCH = "text_mismatch"
    BAD_LOGPROBS = "bad_logprobs"
    DECOY_NOT_NOTICED = "decoy_not_noticed"
    CHAT_UNAVAILABLE = "chat_unavailable"


class SubmissionFault(Exception):
    """End the measurement: the server under test did what `code` names."""

    def __init__(self, code: FailureCode, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class BadInput(Exception):
    """Say in one sentence what is wrong with the spec, the prompts, the references or the tokenizer."""
