"""The REST API, asked as one caller: inside this process, or over the network."""

from typing import Any

import httpx2

Record = dict[str, Any]
Word = str | int | bool | None


class Refused(Exception):
    """The API said no; its own code, message and hint."""

    def __init__(self, code: str, message: str, hint: str | None = None, retry_after_s: int | None = None) -> None:
        """Take what stood in the answer."""
        super().__init__(f"{code}: {message}")
        self.code, self.message, self.hint, self.retry_after_s = code, message, hint, retry_after_s

    def to_json(self) -> Record:
        """Shape the error as the API does; `retry_after_s` is in seconds."""
        more = {"hint": self.hint, "retry_after_s": self.retry_after_s}
        kept = {key: value for key, value in more.items() if value is not None}
        return {"error": {"code": self.code, "message": self.message, **kept}}


class Rest:
    """One caller's view of the API; the client carries address and token."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        """Ask through `client`."""
        self._client = client

    async def get(self, path: str, **params: Word) -> Record:
        """Read.

        Raises:
            Refused: with the API's reason, or because it can't be reached.
        """
        given = {key.rstrip("_"): _word(value) for key, value in params.items() if value not in (None, "")}
        return await self._ask("GET", path, params=given)

    async def post(self, path: str, body: Record, **headers: str) -> Record:
        """Write; `Refused` as `get`."""
        named = {key.replace("_", "-"): value for key, value in headers.items() if value}
        kept = {key: value for key, value in body.items() if value is not None}
        return await self._ask("POST", path, json=kept, headers=named)

    async def _ask(self, method: str, path: str, **given: Any) -> Record:
        try:
            answer = await self._client.request(method, path, **given)
        except httpx2.TransportError as error:
            reason = f"The server can't be reached: {error or type(error).__name__}."
            raise Refused("UNREACHABLE", reason, "Is the address right?") from error
        if answer.is_success:
            return dict(answer.json())
        raise _refusal(answer)


def _word(value: Word) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(answer: httpx2.Response) -> Refused:
    try:
        error = answer.json()["error"]
        code, message, hint = str(error["code"]), str(error["message"]), error.get("hint")
    except (ValueError, KeyError, TypeError):
        return Refused("INTERNAL", f"The server answered {answer.status_code} without a reason.")
    wait = answer.headers.get("retry-after", "")
    return Refused(code, message, hint if isinstance(hint, str) else None, int(wait) if wait.isdigit() else None)
