"""The application's own description, with every answer that a call can give: the refusals, too.

FastAPI knows what a route takes and gives. What it can be refused with follows from what the route depends on: a
token, a transaction, a body, the Hub's protocol. One table says so, instead of a line at each of a hundred routes.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import RouteContext, iter_route_contexts

from board.listing import Record
from web import deps
from web.hub.granting import signer, the_grant
from web.hub.routing import HubRoute

MEANINGS = {
    400: "A name, path, source or parameter is outside its form, or the call came to a foreign host.",
    401: "A token is missing, unknown, expired or revoked.",
    403: "The caller is known and may not do this.",
    404: "What was named isn't here, or isn't the caller's to see.",
    409: "It collides with what is there; the hint says with what.",
    410: "The stored bytes are damaged; nothing wrong is handed out.",
    412: "Something that the caller must make first is missing; the hint says how.",
    413: "More bytes or files than this call takes; nothing of it was kept.",
    422: "Malformed JSON, fields or parameters.",
    429: "A budget is spent.",
    502: "What this call was to start could not be started; nothing was kept.",
    503: "A part that this call depends on doesn't answer; nothing was done.",
    507: "The server's disk is full; nothing of what was sent was kept.",
}

_ALWAYS = (400, 503, 507)
_WRITES = (401, 403, 404, 409, 413, 422, 429)
_BY_NEED: dict[Callable[..., Any], tuple[int, ...]] = {
    deps.maybe_bearer: (401, 403),
    deps.bearer: (401, 403),
    signer: (401, 403, 404),
    the_grant: (401, 403, 404),
}
_BY_TAG = {
    "agents": (412,),
    "messages": (404, 412),
    "results": (412,),
    "taskforces": (412,),
    "traces": (412,),
    "artifacts": (412,),
    "jobs": (412, 502),
    "events": (429,),
    "hub": (404, 410),
    "store": (410,),
}
"""What the areas add: a source needs its bucket, a run its launcher, stored bytes may be damaged."""
_ONLY_WRITES = (412, 502)

_STRICT: set[Callable[..., Any]] = {
    deps.bearer,
    deps.the_bearer,
    deps.the_bucket_writer,
    deps.the_runner,
    deps.the_caller,
}
"""Needs of a caller; without one of them a token is welcome and no more."""

_REFUSAL: Record = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}, "hint": {"type": "string"}},
            "additionalProperties": False,
        },
        "detail": {"description": "With 422: which fields are wrong, and how."},
    },
    "additionalProperties": False,
}
_HUB_REFUSAL: Record = {
    "description": "The Hub's own form; what is refused before the Hub's protocol begins has the board's.",
    "anyOf": [
        {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
        {"$ref": "#/components/schemas/Refusal"},
    ],
}
_RETRY_AFTER: Record = {
    "Retry-After": {
        "description": "Whole seconds that are exactly enough.",
        "required": True,
        "schema": {"type": "integer"},
    }
}
_SCHEMES: Record = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token of this server: `pdk_…`."},
    "store": {"type": "http", "scheme": "bearer", "description": "What a bucket's xet-…-token call gives."},
}


class DescribedApp(FastAPI):
    """An application whose OpenAPI document names every answer."""

    _described: Record | None = None

    def openapi(self) -> Record:
        """Describe the application, once."""
        if self._described is None:
            self._described = described(deepcopy(super().openapi()), iter_route_contexts(self.routes))
        return self._described


def described(document: Record, routes: Iterable[RouteContext]) -> Record:
    """Add to a document what each of the routes can be refused with, and the token that it takes."""
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    schemas |= {"Refusal": _REFUSAL, "HubRefusal": _HUB_REFUSAL}
    parts["securitySchemes"] = _SCHEMES
    for route in routes:
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                _describe(operation, route, method)
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's form of a 422, which is not ours
        schemas.pop(unused, None)
    return document


def _describe(operation: Record, route: RouteContext, method: str) -> None:
    needs = set(_calls(route.dependant))
    answers = operation["responses"]
    for status in statuses(operation, needs, method):
        refusal = _refusal(status, is_hub=isinstance(route.original_route, HubRoute), has_body=method != "HEAD")
        if str(status) not in route.responses and status not in route.responses:
            answers[str(status)] = refusal
    if needs & {deps.maybe_bearer, deps.bearer}:
        operation["security"] = [{"bearer": []}] if needs & _STRICT else [{}, {"bearer": []}]
    elif the_grant in needs:
        operation["security"] = [{"store": []}]


def statuses(operation: Record, needs: set[Callable[..., Any]], method: str) -> list[int]:
    """Say with what a call can be refused."""
    is_write = method not in ("GET", "HEAD")
    found = {*_ALWAYS, *(_WRITES if is_write else ())}
    for need in needs:
        found.update(_BY_NEED.get(need, ()))
    for tag in operation.get("tags", ()):
        found.update(status for status in _BY_TAG.get(tag, ()) if is_write or status not in _ONLY_WRITES)
    taken = operation.get("parameters", [])
    found.update((422,) if taken else (), (404,) if any(item["in"] == "path" for item in taken) else ())
    return sorted(found)


def _refusal(status: int, *, is_hub: bool, has_body: bool) -> Record:
    refusal: Record = {"description": MEANINGS[status]}
    if has_body:
        form = {"$ref": f"#/components/schemas/{'HubRefusal' if is_hub else 'Refusal'}"}
        refusal["content"] = {"application/json": {"schema": form}}
    return refusal | ({"headers": _RETRY_AFTER} if status == 429 else {})


def _calls(dependant: Dependant | None) -> Iterator[Callable[..., Any]]:
    """Everything that a route depends on, however deep."""
    if dependant is None:
        return
    if dependant.call is not None:
        yield dependant.call
    for deeper in dependant.dependencies:
        yield from _calls(deeper)
