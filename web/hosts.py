"""Answer only under names that are this server's own: a foreign Host would be echoed in the URLs we hand out."""

import re
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from storage.errors import Invalid
from storage.settings import Settings
from web.errors import body_of
from web.statuses import status_of

_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::\d{1,5})?", re.ASCII)


class HostNotAllowed(Invalid):
    """The request came for a host that this server isn't known as."""

    code = "HOST_NOT_ALLOWED"


class KnownHosts:
    """Refuse requests for other hosts than those in the settings and the address that was reached."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Wrap `app`."""
        self._app = app
        self._known = _LOCAL | _named_in(settings)
        self._any = "*" in self._known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand one request on, or refuse it."""
        if scope["type"] not in ("http", "websocket") or self._is_known(scope):
            return await self._app(scope, receive, send)
        error = _refusal(scope)
        headers = {"X-Error-Code": error.code, "X-Error-Message": f"{error.message} {error.hint}".rstrip(".")}
        answer = JSONResponse(body_of(error.code, error.message, error.hint), status_of(error), headers)
        return await answer(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        hosts = _hosts(scope)
        if not hosts:
            return True  # HTTP/1.0 names none: the address that was reached stands in
        host = _name(hosts[0]) if len(hosts) == 1 else None
        return host is not None and (self._any or host in self._known or host == _reached(scope))


def _named_in(settings: Settings) -> frozenset[str]:
    """List the names that the settings give, without ports."""
    listed = {part.strip().lower() for part in settings.allowed_hosts.split(",") if part.strip()}
    public = urlsplit(settings.public_url).hostname or ""
    own = {_bracketed(name) for name in (settings.host.lower(), public) if name}
    return frozenset({_name(host) or host for host in listed} | own)


def _hosts(scope: Scope) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]


def _name(host: str) -> str | None:
    """Return the name in a Host header, in lower case and without its port; None if it isn't one."""
    match = _HOST.fullmatch(host.lower())
    return match[1].removesuffix(".") if match else None


def _reached(scope: Scope) -> str | None:
    server = scope.get("server")
    return _bracketed(str(server[0]).lower()) if server else None


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _refusal(scope: Scope) -> HostNotAllowed:
    shown = re.sub(r"[^\x21-\x7e]", "?", ", ".join(_hosts(scope)))[:100]
    return HostNotAllowed(
        f"This server does not answer to the host '{shown}'.", hint="Its operator adds names in PADDOCK_ALLOWED_HOSTS."
    )
