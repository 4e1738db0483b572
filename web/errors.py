"""Failures as answers: the status of their kind (`web.statuses`), and the one JSON shape of an error."""

import errno
import logging
from collections.abc import Mapping
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from sqlalchemy.exc import DataError, OperationalError
from starlette.exceptions import HTTPException

from storage import errors
from web.methods import allowed_methods
from web.pages.failure import failure_page, wants_page
from web.sessions import SignInNeeded
from web.statuses import status_of
from web.text import UNSTORABLE

_log = logging.getLogger(__name__)

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_WORDS = ("database or disk is full", "No space left on device")
"""What SQLite and PostgreSQL say of a full disk."""

TOO_LARGE = ("SYNC_TOO_LARGE", "The body is larger than this call takes; nothing of it was kept.")
"""Code and message of a body that is refused unread."""


def body_of(code: str, message: str, hint: str | None = None) -> dict[str, dict[str, str]]:
    """Build the JSON of an error."""
    return {"error": {"code": code, "message": message, **({"hint": hint} if hint else {})}}


def _answer(
    request: Request,
    status: int,
    code: str,
    message: str,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer a person's browser with a page and everybody else with JSON."""
    response = failure_page(request, status, code, message, hint) or JSONResponse(body_of(code, message, hint), status)
    response.headers.update(headers or {})
    return response


def _paddock(request: Request, error: errors.PaddockError) -> Response:
    if isinstance(error, SignInNeeded) and request.method == "GET" and wants_page(request):
        return RedirectResponse(f"/signin?{urlencode({'next': request.url.path})}", 303)
    headers = {"Retry-After": str(error.retry_after_s)} if isinstance(error, errors.TooMany) else {}
    if isinstance(error, errors.Unauthorized):
        headers["WWW-Authenticate"] = "Bearer"
    return _answer(request, status_of(error), error.code, error.message, error.hint, headers)


def _fields(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    detail = [{key: item[key] for key in ("loc", "msg", "type")} for item in error.errors()]
    return _malformed(request, f"{where}: {first['msg']}", detail)


def _malformed(request: Request, message: str, detail: object) -> Response:
    shown = failure_page(request, 422, "INVALID_REQUEST", message)
    return shown or JSONResponse(jsonable_encoder({**body_of("INVALID_REQUEST", message), "detail": detail}), 422)


def _http(request: Request, error: HTTPException) -> Response:
    if error.status_code == 400:  # FastAPI's word for a body that is no JSON at all
        return _malformed(
            request, str(error.detail), [{"loc": ["body"], "msg": str(error.detail), "type": "json_invalid"}]
        )
    if error.status_code == 413:
        return _answer(request, 413, *TOO_LARGE)
    code = {404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 401: "UNAUTHORIZED"}.get(error.status_code, "INVALID_REQUEST")
    headers = {"Allow": allowed_methods(request)} if error.status_code == 405 else error.headers
    return _answer(request, error.status_code, code, str(error.detail), headers=headers)


def _full(request: Request, error: Exception) -> Response:
    _log.error("No room left on the disk, so %s %s was refused: %s", request.method, request.url.path, error)
    message = "The server's disk is full; nothing of what you sent was kept."
    return _paddock(request, errors.Full(message, hint="Tell the organizers, and send it again once there is room."))


def _system(request: Request, error: OSError) -> Response:
    if error.errno in _FULL:
        return _full(request, error)
    raise error  # `_broken` answers, and the log gets the traceback


def _database(request: Request, error: OperationalError) -> Response:
    if any(word in str(error.orig) for word in _FULL_WORDS):
        return _full(request, error)
    message = "The database can't take this now; nothing was changed."
    return _answer(request, 503, "UNAVAILABLE", message, "Try again in a few seconds.", {"Retry-After": "3"})


def _unstorable(request: Request, _error: DataError) -> Response:
    """Answer text that the database has no form for."""
    return _malformed(request, UNSTORABLE, [{"loc": [], "msg": UNSTORABLE, "type": "value_error"}])


def _broken(request: Request, _error: Exception) -> Response:
    """Answer what nobody foresaw; the server's log has the traceback."""
    return _answer(request, 500, "INTERNAL", "Something broke on our side; the operator's log says what.")


def install(app: FastAPI) -> None:
    """Answer every failure in the one shape."""
    app.add_exception_handler(errors.PaddockError, _paddock)  # type: ignore[arg-type]  # starlette wants Exception
    app.add_exception_handler(RequestValidationError, _fields)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http)  # type: ignore[arg-type]
    app.add_exception_handler(DataError, _unstorable)  # type: ignore[arg-type]
    app.add_exception_handler(Exception, _broken)
    app.add_exception_handler(OperationalError, _database)  # type: ignore[arg-type]
    app.add_exception_handler(OSError, _system)  # type: ignore[arg-type]
