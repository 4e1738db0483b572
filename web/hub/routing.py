"""Answer the Hub's paths in the Hub's own form of an error."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from sqlalchemy.exc import DataError

from storage.buckets import BucketNotFound, FileNotInBucket
from storage.errors import Corrupt, Malformed, PaddockError, TooMany
from web.hub.ranges import RangeNotSatisfiable
from web.statuses import status_of
from web.text import UNSTORABLE

_HUB_CODES: dict[type[PaddockError], str] = {BucketNotFound: "RepoNotFound", FileNotInBucket: "EntryNotFound"}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class HubRoute(APIRoute):
    """A route whose failures carry `X-Error-Code`, `X-Error-Message` and `{"error": "…"}`."""

    def get_route_handler(self) -> Handler:
        """Wrap the handler so that our failures become the Hub's."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except PaddockError as error:
                return refusal(error)
            except RequestValidationError as error:
                first = error.errors()[0]
                return refusal(Malformed(f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"))
            except DataError:
                return refusal(Malformed(UNSTORABLE))

        return answer


def refusal(error: PaddockError) -> JSONResponse:
    """Write a failure as the Hub's clients read it."""
    message = f"{error.message} {error.hint}" if error.hint else error.message
    headers = {
        "X-Error-Code": next((_HUB_CODES[kind] for kind in type(error).__mro__ if kind in _HUB_CODES), error.code),
        "X-Error-Message": _header_text(message),
    }
    if isinstance(error, TooMany):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, RangeNotSatisfiable):
        return JSONResponse({"error": message}, 416, headers | {"Content-Range": f"bytes */{error.size}"})
    # Clients repeat a 5xx for minutes; bytes that are damaged here stay so, and that is 410.
    status = 410 if isinstance(error, Corrupt) else status_of(error)
    return JSONResponse({"error": message}, status, headers)


def _header_text(message: str) -> str:
    """Fit a message into a header; clients add the full stop themselves."""
    return " ".join(message.encode("ascii", "replace").decode().split()).rstrip(".")
