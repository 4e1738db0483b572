"""Say which methods an address has: the router itself names only those of the first route that fits."""

from fastapi import FastAPI, Request
from starlette.routing import Match

_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")


def allowed_methods(request: Request) -> str:
    """List the methods of all routes at the request's address, as the Allow header has them."""
    app: FastAPI = request.app
    return ", ".join(method for method in _METHODS if _is_served(app, request, method))


def _is_served(app: FastAPI, request: Request, method: str) -> bool:
    scope = {key: request.scope[key] for key in ("type", "path", "root_path", "headers")} | {"method": method}
    return any(route.matches(dict(scope))[0] is Match.FULL for route in app.router.routes)
