"""Whatever is logged, and by whom, holds no token."""

import logging
from collections.abc import Iterator

import pytest

from agents import tokens
from web.redaction import redact_logs

BODY = "a" * 32
TOKEN = f"{tokens.PREFIX}{BODY}{tokens._checksum(BODY)}"


@pytest.fixture(autouse=True)
def redacted() -> Iterator[None]:
    before = logging.getLogRecordFactory()
    redact_logs()
    yield
    logging.setLogRecordFactory(before)


def test_a_token_is_taken_out_of_messages_arguments_and_tracebacks(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("some.library")
    log.warning("got %s", TOKEN)
    log.warning(f"got {TOKEN} in {{}}")
    log.warning("mapping %(what)s", {"what": TOKEN})
    try:
        raise ValueError(TOKEN) from KeyError(TOKEN)
    except ValueError:
        log.exception("it broke")
    assert TOKEN not in caplog.text
    assert BODY not in caplog.text
    assert caplog.text.count("pdk_…") == 5
    assert "in test_a_token_is_taken_out" in caplog.text  # the traceback itself is there
