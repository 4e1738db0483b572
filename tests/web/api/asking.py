"""What tests of refusals read from an answer."""

from httpx import Response


def code(answer: Response) -> tuple[int, str]:
    """The status and the code of an error in the one shape; 200s have no code."""
    body = answer.json()
    assert set(body) <= {"error", "detail"}, body
    assert {"code", "message"} <= set(body["error"]) <= {"code", "message", "hint"}, body
    assert ("detail" in body) is (answer.status_code == 422), body
    return answer.status_code, body["error"]["code"]
